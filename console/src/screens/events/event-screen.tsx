import { Card, Group, Skeleton, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Page } from '../../parts/page.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Instant } from '../../parts/time.tsx'

/** One event: what it was, who changed it, and for every webhook why it got it or did not. */
export function EventScreen() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/events/$id' })
  const path = { id }
  const event = useQuery({
    queryKey: ['event', id],
    queryFn: ({ signal }) => api.webhook.eventOccurrenceFindOne({ path, signal }),
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
      {event.isPending && <Skeleton height={200} />}
      {event.isError && <ProblemCard error={event.error} onRetry={() => void event.refetch()} />}
      {row && (
        <>
          <Facts
            lines={[
              [t('event.id'), <CopyText key="id" text={row.document_id} />],
              [t('deliveries.created'), <Instant key="at" at={row.created_at} />],
              row.resource_id === null
                ? undefined
                : [t('event.resource'), <CopyText key="r" text={`${row.resource} ${row.resource_id}`} />],
              row.account === null ? undefined : [t('delivery.account'), <CopyText key="a" text={row.account} />],
              row.url === null ? undefined : [t('event.url'), <CopyText key="u" text={row.url} />],
              [t('event.routed'), <Instant key="routed" at={row.routed_at} />],
            ]}
          />
          <Cause event={row} />
          <Routing id={row.document_id} />
        </>
      )}
    </Page>
  )
}

/** The audit entries about the same thing at the same time: who changed it, and with what request. */
function Cause({ event }: { event: Schemas['EventOccurrence'] }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const { resource_id, created_at, event: name } = event
  const atMs = Date.parse(created_at)
  const [from, to] = [atMs - 2_000, atMs + 2_000].map((one) => new Date(one).toISOString())
  const filters = [`target|eq|${resource_id}`, `action|eq|${name}`, `created_at|between|${from},${to}`]
  const entries = useQuery({
    queryKey: ['audit', filters],
    queryFn: ({ signal }) => api.audit.auditLogFindAll({ query: { filters }, signal }),
    enabled: resource_id !== null && may('audit-log:find-all'),
  })
  if (!entries.data || entries.data.data.length === 0) return null
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('event.cause')}
      </Title>
      {entries.data.data.map((entry) => (
        <Card key={entry.document_id} withBorder p="sm">
          <Facts
            lines={[
              entry.user === null
                ? undefined
                : [
                    t('audit.user'),
                    <TextLink key="u" to="/users/$id" params={{ id: entry.user }} className="mono">
                      {entry.user}
                    </TextLink>,
                  ],
              entry.client_id === null ? undefined : [t('audit.app'), entry.client_id],
              entry.api_key === null ? undefined : [t('audit.key'), <CopyText key="k" text={entry.api_key} />],
              entry.address === null ? undefined : [t('audit.address'), entry.address],
              entry.request_id === null
                ? undefined
                : [t('problem.request'), <CopyText key="r" text={entry.request_id} />],
            ]}
          />
        </Card>
      ))}
    </Stack>
  )
}

/** Why each webhook got the event, or did not. */
function Routing({ id }: { id: string }) {
  const { t } = useTranslation()
  const routing = useQuery({
    queryKey: ['routing', id],
    queryFn: ({ signal }) => api.webhook.eventOccurrenceRouting({ path: { id }, signal }),
  })
  const verdicts = routing.data?.data
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('event.routing')}
      </Title>
      {routing.isError && <ProblemCard error={routing.error} onRetry={() => void routing.refetch()} />}
      {routing.isPending && <Skeleton height={120} />}
      {verdicts?.webhooks.length === 0 && <Text c="dimmed">{t('event.no-webhook')}</Text>}
      {verdicts?.webhooks.map((one) => (
        <Card key={one.webhook} withBorder p="sm">
          <Group justify="space-between" align="flex-start">
            <Stack gap={2} miw={0} flex={1}>
              <TextLink to="/webhooks/$id" params={{ id: one.webhook }} size="sm" fw={600}>
                {one.name ?? one.webhook}
              </TextLink>
              <Text size="sm">{one.reason}</Text>
            </Stack>
            <Group gap="xs">
              {one.dispatch_status ? (
                <Status name={one.dispatch_status} />
              ) : (
                <Text size="sm">{t('event.not-sent')}</Text>
              )}
              {one.dispatch && (
                <TextLink to="/deliveries/$id" params={{ id: one.dispatch }} size="sm">
                  {t('event.open-delivery')}
                </TextLink>
              )}
            </Group>
          </Group>
        </Card>
      ))}
      {verdicts?.truncated && <Text c="dimmed">{t('event.truncated')}</Text>}
    </Stack>
  )
}
