import { Alert, Group, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { Icon } from '../../../frame/icons.tsx'
import { CopyText } from '../../../parts/copy-text.tsx'
import { withTag } from '../../../parts/row-edit.ts'
import { Status, webhookState } from '../../../parts/status.tsx'
import { Instant } from '../../../parts/time.tsx'
import { DISABLE_AFTER } from '../../../parts/words/webhook-name.ts'
import { PullState } from '../mode.tsx'

type Webhook = Schemas['Webhook']

/** Reads a webhook every 5 seconds. */
export function useWebhook(id: string) {
  return useQuery({
    queryKey: ['webhook', id],
    queryFn: ({ signal }) => withTag(api.webhook.webhookFindOne({ path: { id }, signal })),
    refetchInterval: 5_000,
  })
}

/** State of a webhook, its URL or what waits to be pulled, and its limit a second. */
export function WebhookLead({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation('console')
  const { max_per_second: limit } = webhook
  return (
    <Group gap="xs">
      <Status name={webhookState(webhook)} />
      {webhook.mode === 'pull' ? <PullState id={webhook.document_id} /> : <CopyText text={webhook.url} />}
      {limit !== null && (
        <Text size="sm" c="dimmed">
          {t('webhooks.limited', { limit })}
        </Text>
      )}
    </Group>
  )
}

/** Says that deliveries of an active webhook fail, with `children`, or that the service disabled the webhook for it. */
export function FailureWarning({ webhook, children }: { webhook: Webhook; children?: ReactNode }) {
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
  // An inactive webhook fails no further: nothing is to be warned of.
  if (failures === 0 || !is_actived) return null
  return (
    <Alert
      color="yellow"
      variant="outline"
      icon={<Icon name="warn" />}
      title={t('webhooks.streak', { count: failures })}
    >
      <Text size="sm" mb={children ? 'xs' : 0}>
        {t('webhooks.streak-text', { count: DISABLE_AFTER - failures })}
      </Text>
      {children}
    </Alert>
  )
}
