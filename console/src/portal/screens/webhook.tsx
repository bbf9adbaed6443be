import { Alert, Group, Skeleton, Tabs, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Icon } from '../../frame/icons.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Status, webhookState } from '../../parts/status.tsx'
import { Instant } from '../../parts/time.tsx'
import { nameOf } from '../../parts/words/webhook-name.ts'
import { SignatureDebugger } from '../../screens/webhooks/detail/signature-debugger.tsx'
import { WebhookEventSet } from '../../screens/webhooks/detail/webhook-event-set.tsx'
import { hrefOf } from '../route.ts'
import { Screen } from '../screen.tsx'
import { DeliveryList } from './delivery-list.tsx'
import { WebhookActions } from './webhook-actions.tsx'
import { WebhookForm } from './webhook-form.tsx'

/** Failed deliveries in a row that disable a webhook (docs/contract/delivery.md#automatic-disable). */
const DISABLE_AFTER = 20

const TABS = ['deliveries', 'events', 'signature', 'settings'] as const

/** One webhook: its deliveries, its events, its signature, its settings. */
export function Webhook({ id }: { id: string }) {
  const { t } = useTranslation('console')
  const webhook = useQuery({
    queryKey: ['webhook', id],
    queryFn: ({ signal }) => api.webhook.webhookFindOne({ path: { id }, signal }),
    refetchInterval: 5_000,
  })
  const row = webhook.data?.data
  const back = { label: t('webhooks.title'), href: hrefOf('webhooks') }
  if (!row)
    return (
      <Screen title={t('webhooks.one')} back={back}>
        {webhook.isError ? (
          <ProblemCard error={webhook.error} onRetry={() => void webhook.refetch()} />
        ) : (
          <Skeleton height={240} />
        )}
      </Screen>
    )
  return (
    <Screen
      title={nameOf(row)}
      back={back}
      lead={
        <Group gap="xs">
          <Status name={webhookState(row)} />
          <CopyText text={row.url} />
        </Group>
      }
      actions={<WebhookActions webhook={row} />}
    >
      <Warning webhook={row} />
      <Sections webhook={row} />
    </Screen>
  )
}

/** Says that deliveries fail, and what happens when they go on to fail. */
function Warning({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation('console')
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
      <Text size="sm">{t('webhooks.streak-text', { left: DISABLE_AFTER - failures })}</Text>
    </Alert>
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
