import { Tabs } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { nameOf } from '../../parts/words/webhook-name.ts'
import { SignatureDebugger } from '../../screens/webhooks/detail/signature-debugger.tsx'
import { WebhookEventSet } from '../../screens/webhooks/detail/webhook-event-set.tsx'
import { FailureWarning, useWebhook, WebhookLead, WebhookPending } from '../../screens/webhooks/detail/webhook-head.tsx'
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
  const back = { label: t('webhooks.title'), href: hrefOf('webhooks') }
  if (!row)
    return (
      <Screen title={t('webhooks.one')} back={back}>
        <WebhookPending webhook={webhook} />
      </Screen>
    )
  return (
    <Screen
      title={nameOf(row)}
      back={back}
      lead={<WebhookLead webhook={row} />}
      actions={<WebhookActions webhook={row} />}
    >
      <FailureWarning webhook={row} />
      <Sections webhook={row} />
    </Screen>
  )
}

function Sections({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation('console')
  const [tab, setTab] = useState<string | null>('deliveries')
  return (
    <Tabs value={tab} onChange={setTab} keepMounted={false}>
      <Tabs.List>
        {TABS.map((tab) => (
          <Tabs.Tab key={tab} value={tab}>
            {t(`webhooks.tab.${tab}`)}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value="deliveries" pt="md">
        <DeliveryList filters={[`webhook|eq|${webhook.document_id}`]} />
      </Tabs.Panel>
      <Tabs.Panel value="events" pt="md">
        <WebhookEventSet webhook={webhook} />
      </Tabs.Panel>
      <Tabs.Panel value="signature" pt="md">
        <SignatureDebugger />
      </Tabs.Panel>
      <Tabs.Panel value="settings" pt="md">
        <WebhookForm webhook={webhook} />
      </Tabs.Panel>
    </Tabs>
  )
}
