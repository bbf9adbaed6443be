import { Tabs } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Loaded } from '../../parts/loaded.tsx'
import { TabStrip } from '../../parts/scroll/tab-strip.tsx'
import { nameOf } from '../../parts/words/webhook-name.ts'
import { SignatureDebugger } from '../../screens/webhooks/detail/signature-debugger.tsx'
import { ThrottleNotice } from '../../screens/webhooks/detail/throttle-notice.tsx'
import { WebhookEventSet } from '../../screens/webhooks/detail/webhook-event-set.tsx'
import { FailureWarning, useWebhook, WebhookLead } from '../../screens/webhooks/detail/webhook-head.tsx'
import { hrefOf } from '../route.ts'
import { Screen } from '../screen.tsx'
import { DeliveryList } from './delivery-list.tsx'
import { WebhookActions } from './webhook-actions.tsx'
import { WebhookForm } from './webhook-form.tsx'

const TABS = ['deliveries', 'events', 'signature', 'settings'] as const

/** One webhook: its deliveries, its events, its signature, its settings. */
export function Webhook({ id }: { id: string }) {
  const { t } = useTranslation('console')
  const webhook = useWebhook(id)
  const row = webhook.data?.data
  return (
    <Screen
      title={row ? nameOf(row) : t('webhooks.one')}
      back={{ label: t('webhooks.title'), href: hrefOf('webhooks') }}
      lead={row && <WebhookLead webhook={row} />}
      actions={row && <WebhookActions webhook={row} />}
    >
      <Loaded query={webhook} height={240}>
        {({ data }) => (
          <>
            <FailureWarning webhook={data} />
            <ThrottleNotice webhook={data} />
            <Sections webhook={data} />
          </>
        )}
      </Loaded>
    </Screen>
  )
}

function Sections({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation('console')
  const [tab, setTab] = useState<string | null>('deliveries')
  return (
    <Tabs value={tab} onChange={setTab} keepMounted={false}>
      <TabStrip open={tab}>
        {TABS.map((tab) => (
          <Tabs.Tab key={tab} value={tab}>
            {t(`webhooks.tab.${tab}`)}
          </Tabs.Tab>
        ))}
      </TabStrip>
      <Tabs.Panel value="deliveries" pt="md">
        <DeliveryList filters={[`webhook|eq|${webhook.document_id}`]} />
      </Tabs.Panel>
      <Tabs.Panel value="events" pt="md">
        <WebhookEventSet webhook={webhook} />
      </Tabs.Panel>
      <Tabs.Panel value="signature" pt="md">
        <SignatureDebugger webhook={webhook} />
      </Tabs.Panel>
      <Tabs.Panel value="settings" pt="md">
        <WebhookForm webhook={webhook} />
      </Tabs.Panel>
    </Tabs>
  )
}
