import { Progress, Tabs, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { List, useRows } from '../../../parts/list.tsx'
import { Loaded } from '../../../parts/loaded.tsx'
import { Page } from '../../../parts/page.tsx'
import { NoPermission } from '../../../parts/problem.tsx'
import { TabStrip } from '../../../parts/scroll/tab-strip.tsx'
import { DISABLE_AFTER, nameOf } from '../../../parts/words/webhook-name.ts'
import { useDeliveryColumns } from '../../deliveries/delivery-table.tsx'
import { WebhookActions } from '../webhook-actions.tsx'
import { ThrottleNotice } from './throttle-notice.tsx'
import { WebhookEventSet } from './webhook-event-set.tsx'
import { FailureWarning, useWebhook, WebhookLead } from './webhook-head.tsx'
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
  const webhook = useWebhook(id)
  const row = webhook.data?.data
  return (
    <Page
      title={row ? nameOf(row) : t('webhooks.one')}
      parent={{ label: t('webhooks.title'), to: '/webhooks' }}
      lead={row && <WebhookLead webhook={row} />}
      actions={row && <WebhookActions webhook={row} />}
    >
      <Loaded query={webhook} height={240}>
        {({ data }) => (
          <>
            <Disabled webhook={data} />
            <ThrottleNotice webhook={data} />
            <Sections webhook={data} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Disabled({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { consecutive_failures: failures } = webhook
  return (
    <FailureWarning webhook={webhook}>
      <Progress
        value={(failures / DISABLE_AFTER) * 100}
        color={failures >= 15 ? 'red' : 'yellow'}
        aria-label={t('webhooks.failures')}
      />
    </FailureWarning>
  )
}

function Sections({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { tab } = useSearch({ from: '/webhooks/$id' })
  const navigate = useNavigate()
  const params = { id: webhook.document_id }
  const open = TABS.find((item) => item === tab) ?? 'overview'
  const choose = (value: string | null) => {
    const search = value === null ? {} : { tab: value }
    void navigate({ to: '/webhooks/$id', params, search, replace: true, resetScroll: false })
  }
  return (
    <Tabs value={open} onChange={choose} keepMounted={false}>
      <TabStrip open={open}>
        {TABS.map((tab) => (
          <Tabs.Tab key={tab} value={tab}>
            {t(`webhooks.tab.${tab}`)}
          </Tabs.Tab>
        ))}
      </TabStrip>
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
      empty={<Text size="sm">{t('webhooks.no-delivery')}</Text>}
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
