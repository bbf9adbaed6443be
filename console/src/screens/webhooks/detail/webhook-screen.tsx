import { Alert, Group, Progress, Skeleton, Tabs, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { Icon } from '../../../frame/icons.tsx'
import { useAccess } from '../../../frame/session.tsx'
import { CopyText } from '../../../parts/copy-text.tsx'
import { List, useRows } from '../../../parts/list.tsx'
import { Page } from '../../../parts/page.tsx'
import { NoPermission, ProblemCard } from '../../../parts/problem.tsx'
import { Status, webhookState } from '../../../parts/status.tsx'
import { Instant } from '../../../parts/time.tsx'
import { DISABLE_AFTER, nameOf } from '../../../parts/words/webhook-name.ts'
import { useDeliveryColumns } from '../../deliveries/delivery-table.tsx'
import { WebhookActions } from '../webhook-actions.tsx'
import { WebhookEventSet } from './webhook-event-set.tsx'
import { WebhookHistory } from './webhook-history.tsx'
import { WebhookOverview } from './webhook-overview.tsx'
import { WebhookSettings } from './webhook-settings.tsx'
import { WebhookTesting } from './webhook-testing.tsx'
import { WebhookVerify } from './webhook-verify.tsx'

type Webhook = Schemas['Webhook']

const TABS = ['overview', 'deliveries', 'events', 'testing', 'verify', 'settings', 'history'] as const

/** One webhook: what it gets, what came of it, its events and settings. */
export function WebhookScreen() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/webhooks/$id' })
  const webhook = useQuery({
    queryKey: ['webhook', id],
    queryFn: ({ signal }) => api.webhook.webhookFindOne({ path: { id }, signal }),
    refetchInterval: 5_000,
  })
  const parent = { label: t('webhooks.title'), to: '/webhooks' }
  const row = webhook.data?.data
  if (!row)
    return (
      <Page title={t('webhooks.one')} parent={parent}>
        {webhook.isError ? (
          <ProblemCard error={webhook.error} onRetry={() => void webhook.refetch()} />
        ) : (
          <Skeleton height={240} />
        )}
      </Page>
    )
  return (
    <Page
      title={nameOf(row)}
      parent={parent}
      lead={
        <Group gap="xs">
          <Status name={webhookState(row)} />
          <CopyText text={row.url} />
        </Group>
      }
      actions={<WebhookActions webhook={row} />}
    >
      <Disabled webhook={row} />
      <Sections webhook={row} />
    </Page>
  )
}

function Disabled({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { is_actived, disabled_reason: reason, disabled_at, consecutive_failures: failures } = webhook
  if (!is_actived && reason !== null)
    return (
      <Alert color="red" variant="outline" icon={<Icon name="warn" />} title={t(`disabled.${reason}`)}>
        <Text size="sm">
          <Instant at={disabled_at} />. {t(`disabled.${reason}-text`)}
        </Text>
      </Alert>
    )
  if (failures === 0) return null
  return (
    <Alert
      color="yellow"
      variant="outline"
      icon={<Icon name="warn" />}
      title={t('webhooks.streak', { count: failures })}
    >
      <Text size="sm" mb="xs">
        {t('webhooks.streak-text', { left: DISABLE_AFTER - failures })}
      </Text>
      <Progress
        value={(failures / DISABLE_AFTER) * 100}
        color={failures >= 15 ? 'red' : 'yellow'}
        aria-label={t('webhooks.failures')}
      />
    </Alert>
  )
}

function Sections({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { tab } = useSearch({ from: '/webhooks/$id' })
  const navigate = useNavigate()
  const params = { id: webhook.document_id }
  return (
    <Tabs
      value={TABS.find((item) => item === tab) ?? 'overview'}
      onChange={(value) =>
        void navigate({ to: '/webhooks/$id', params, search: value === null ? {} : { tab: value }, replace: true })
      }
      keepMounted={false}
    >
      <div className="scroll">
        <Tabs.List style={{ flexWrap: 'nowrap', minWidth: 'max-content' }}>
          {TABS.map((tab) => (
            <Tabs.Tab key={tab} value={tab}>
              {t(`webhooks.tab.${tab}`)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
      </div>
      {TABS.map((tab) => {
        const Section = SECTIONS[tab]
        return (
          <Tabs.Panel key={tab} value={tab} pt="md">
            <Section webhook={webhook} />
          </Tabs.Panel>
        )
      })}
    </Tabs>
  )
}

function Deliveries({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const columns = useDeliveryColumns()
  const query = { filters: [`webhook|eq|${webhook.document_id}`], sort: '-created_at' as const }
  const rows = useRows({
    key: ['deliveries', 'webhook', webhook.document_id],
    load: (page, signal) => api.webhook.webhookDispatchFindAll({ query: { ...query, ...page }, signal }),
    isNewestFirst: true,
  })
  if (!may('webhook-dispatch:find-all')) return <NoPermission permission="webhook-dispatch:find-all" />
  return (
    <List
      name="webhook-deliveries"
      caption={t('deliveries.title')}
      columns={columns}
      rows={rows}
      isFiltered={false}
      empty={<Text>{t('webhooks.no-delivery')}</Text>}
    />
  )
}

const SECTIONS = {
  overview: WebhookOverview,
  deliveries: Deliveries,
  events: WebhookEventSet,
  testing: WebhookTesting,
  verify: WebhookVerify,
  settings: WebhookSettings,
  history: WebhookHistory,
} satisfies Record<(typeof TABS)[number], (props: { webhook: Webhook }) => ReactNode>
