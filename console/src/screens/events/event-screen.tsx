import { Button, Card, Group, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Account } from '../../parts/names.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission, ProblemCard } from '../../parts/problem.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Instant } from '../../parts/time.tsx'
import { StoryLine } from './story-line.tsx'
import { useStory } from './use-story.ts'

/** One event: what it was, who changed it, and for every webhook why it got it or did not. */
export function EventScreen() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/events/$id' })
  const path = { id }
  const event = useQuery({
    queryKey: ['event', id],
    queryFn: ({ signal }) => api.webhook.eventOccurrenceFindOne({ path, signal }),
    refetchInterval: ({ state }) => (state.data?.data.routed_at === null ? 2_000 : false),
  })
  const row = event.data?.data
  return (
    <Page
      title={row?.event ?? t('event.one')}
      parent={{ label: t('event.title'), to: '/events' }}
      actions={
        <ApiCall
          operation="webhook.eventOccurrenceRouting"
          method="GET"
          path={`/api/v3/webhook/event-occurrence/${id}/routing`}
        />
      }
    >
      <Loaded query={event} height={200}>
        {({ data: row }) => (
          <>
            <Facts
              lines={[
                [t('event.id'), <CopyText key="id" text={row.document_id} />],
                [t('deliveries.created'), <Instant key="at" at={row.created_at} />],
                row.resource_id === null
                  ? undefined
                  : [
                      t('event.resource'),
                      <Group key="r" gap="sm">
                        <CopyText text={`${row.resource} ${row.resource_id}`} />
                        <TextLink to="/events" search={{ resource_id: row.resource_id }} size="sm">
                          {t('event.of-resource')}
                        </TextLink>
                        <TextLink to="/deliveries" search={{ resource: row.resource_id }} size="sm">
                          {t('event.deliveries-of-resource')}
                        </TextLink>
                      </Group>,
                    ],
                row.account === null ? undefined : [t('delivery.account'), <Account key="a" id={row.account} />],
                row.url === null ? undefined : [t('event.url'), <CopyText key="u" text={row.url} />],
                [t('event.routed'), <Instant key="routed" at={row.routed_at} />],
              ]}
            />
            <Story event={row} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

/** The time line, and why each webhook got the event or did not. */
function Story({ event }: { event: Schemas['EventOccurrence'] }) {
  const story = useStory(event)
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="xl">
      <StoryLine story={story} startMs={Date.parse(event.created_at)} />
      <Routing event={event.event} routing={story.routing} />
    </SimpleGrid>
  )
}

function Routing({ event, routing }: { event: string; routing: ReturnType<typeof useStory>['routing'] }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const verdicts = routing.data?.data
  if (!may('event-occurrence:routing')) return <NoPermission permission="event-occurrence:routing" />
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('event.routing')}
      </Title>
      {routing.isError && <ProblemCard error={routing.error} onRetry={() => void routing.refetch()} />}
      {routing.isPending && <Skeleton height={120} />}
      {verdicts?.webhooks.length === 0 && (
        <Text size="sm" c="dimmed">
          {t('event.no-webhook')}
        </Text>
      )}
      {verdicts && <Verdicts event={event} webhooks={verdicts.webhooks} />}
      {verdicts?.truncated && (
        <Text size="sm" c="dimmed">
          {t('event.truncated')}
        </Text>
      )}
    </Stack>
  )
}

type VerdictOfWebhook = Schemas['RoutingExplanation']['webhooks'][number]

/** Verdicts of webhooks that the event was never meant for: most of them, and seldom the answer. */
const UNMEANT = new Set<VerdictOfWebhook['verdict']>(['not_subscribed', 'other_account', 'other_resource'])

/** The webhooks that the event was meant for, and behind a button all others. */
function Verdicts({ event, webhooks }: { event: string; webhooks: readonly VerdictOfWebhook[] }) {
  const { t } = useTranslation()
  const [isWhole, { toggle }] = useDisclosure(false)
  const meant = webhooks.filter(({ verdict }) => !UNMEANT.has(verdict))
  const others = webhooks.filter(({ verdict }) => UNMEANT.has(verdict))
  const isOpen = isWhole || meant.length === 0
  return (
    <>
      {meant.map((webhook) => (
        <Verdict key={webhook.webhook} event={event} verdict={webhook} />
      ))}
      {others.length > 0 && meant.length > 0 && (
        <Group>
          <Button variant="default" size="compact-sm" aria-expanded={isWhole} onClick={toggle}>
            {isWhole ? t('event.hide-others') : t('event.others', { count: others.length })}
          </Button>
        </Group>
      )}
      {isOpen && others.map((webhook) => <Verdict key={webhook.webhook} event={event} verdict={webhook} />)}
    </>
  )
}

function Verdict({ event, verdict: row }: { event: string; verdict: VerdictOfWebhook }) {
  const { t } = useTranslation()
  const { webhook, name, verdict, dispatch, dispatch_status: status } = row
  return (
    <Card withBorder p="sm">
      <Group justify="space-between" align="flex-start" gap="xs">
        <Stack gap={2} miw={0} className="grow wrap">
          <TextLink to="/webhooks/$id" params={{ id: webhook }} size="sm" fw={600}>
            {name ?? webhook}
          </TextLink>
          <Text size="sm">{t(`verdict.${verdict}`, { event })}</Text>
        </Stack>
        <Group gap="xs">
          {status ? <Status name={status} /> : <Text size="sm">{t('event.not-sent')}</Text>}
          {dispatch && (
            <TextLink to="/deliveries/$id" params={{ id: dispatch }} size="sm">
              {t('event.open-delivery')}
            </TextLink>
          )}
        </Group>
      </Group>
    </Card>
  )
}
