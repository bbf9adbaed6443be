import { Button, Group, Stack, Switch, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { useDescriptions } from '../../parts/words/descriptions.ts'
import { ScopeBadge } from './catalogue-screen.tsx'
import { DeprecatedBadge, Deprecation, DeprecationNotice } from './deprecation.tsx'
import { EnvelopeExample } from './envelope-example.tsx'
import { useStaleNames } from './event-types.ts'
import { type EventType, stateOf } from './filter-types.ts'
import { RoutingForecast } from './routing-forecast.tsx'
import { Subscribers } from './subscribers.tsx'

/** One event type: what produces it, who can get it, what is posted, who subscribes, and whom an event would reach. */
export function EventTypeScreen() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/catalogue/$id' })
  const stale = useStaleNames()
  const type = useQuery({
    queryKey: ['event-types', id],
    queryFn: ({ signal }) => api.webhook.eventFindOne({ path: { id }, signal }),
  })
  const row = type.data?.data
  return (
    <Page
      title={row?.internal ?? t('catalogue.one')}
      parent={{ label: t('catalogue.title'), to: '/catalogue' }}
      lead={
        row && (
          <Group gap="xs">
            <Status name={stateOf(row, stale)} />
            <ScopeBadge scope={row.account_scope} />
            <DeprecatedBadge type={row} />
          </Group>
        )
      }
      actions={<ApiCall operation="webhook.eventFindOne" method="GET" path={`/api/v3/webhook/event/${id}`} />}
    >
      <Loaded query={type} height={300}>
        {({ data }) => <Detail type={data} isStale={stale.has(data.internal)} />}
      </Loaded>
    </Page>
  )
}

function Detail({ type, isStale }: { type: EventType; isStale: boolean }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const { ofType } = useDescriptions()
  const { document_id, internal, method, route, source, account_scope } = type
  const rule = internal.endsWith('.purge') ? 'purge' : account_scope
  return (
    <>
      <DeprecationNotice type={type} />
      <Facts
        lines={[
          [t('catalogue.fires'), ofType(type) ?? '–'],
          [t('catalogue.group'), type.group ?? '–'],
          [
            t('catalogue.produced'),
            method ? <CopyText key="route" text={`${method} ${route}`} /> : t(`catalogue.source.${source}`),
          ],
          [t('catalogue.who'), t(`catalogue.rule.${rule}`)],
          [t('catalogue.id'), <CopyText key="id" text={document_id} />],
          may('webhook-dispatch:find-all')
            ? [
                t('deliveries.title'),
                <TextLink key="d" to="/deliveries" search={{ event: internal }} size="sm">
                  {t('catalogue.deliveries')}
                </TextLink>,
              ]
            : undefined,
        ]}
      />
      <Marks type={type} isStale={isStale} />
      <Deprecation key={type.updated_at} type={type} />
      {may('event:routing') && <RoutingForecast type={type} />}
      {may('webhook-event:find-all') && <Subscribers type={type} />}
      <Stack gap="xs">
        <Title order={2} size="h4">
          {t('catalogue.envelope')}
        </Title>
        {type.example !== null && <EnvelopeExample type={type} />}
      </Stack>
    </>
  )
}

/** Changes that an administrator may make. */
function Marks({ type, isStale }: { type: EventType; isStale: boolean }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const path = { id: type.document_id }
  const touches = [['event-types'], ['catalogue-status']]
  const show = useChange({
    make: (is_tenant_visible: boolean) => api.webhook.eventTenantVisible({ path, body: { is_tenant_visible } }),
    touches,
  })
  const set = (is_actived: boolean) => api.webhook.eventActive({ path, body: { is_actived } })
  const activate = useChange({
    make: set,
    touches,
    notice: (isActive) =>
      isActive ? undefined : { text: t('catalogue.deactivated', { event: type.internal }), undo: () => set(true) },
  })
  const mayRest = isStale || type.source === 'external' || !type.is_actived
  const error = show.error ?? activate.error
  return (
    <Stack gap="xs">
      {may('event:tenant-visible') && (
        <Switch
          label={t('catalogue.visible')}
          description={t('catalogue.visible-text')}
          checked={type.is_tenant_visible}
          disabled={show.isPending}
          onChange={({ currentTarget }) => show.mutate(currentTarget.checked)}
        />
      )}
      {may('event:active') && mayRest && (
        <Group>
          <Button
            variant="default"
            size="xs"
            loading={activate.isPending}
            onClick={() => activate.mutate(!type.is_actived)}
          >
            {type.is_actived ? t('catalogue.deactivate') : t('catalogue.activate')}
          </Button>
          <Text size="sm" c="dimmed">
            {t('catalogue.deactivate-text')}
          </Text>
        </Group>
      )}
      {error !== null && <ProblemCard error={error} />}
    </Stack>
  )
}
