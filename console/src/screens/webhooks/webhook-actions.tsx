import { Button, Menu } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Icon } from '../../frame/icons.tsx'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { describeDeactivation } from '../../parts/words/deactivation.ts'
import { nameOf } from '../../parts/words/webhook-name.ts'
import { BESIDE_OTHER } from '../deliveries/beside.ts'
import { RotateDialog } from './rotate-dialog.tsx'
import { WebhookButtons } from './webhook-buttons.tsx'

type Webhook = Schemas['Webhook']

/** Actions on a webhook. */
export function WebhookActions({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const navigate = useNavigate()
  const [asked, setAsked] = useState<Question | undefined>()
  const id = webhook.document_id
  const send = useTest(webhook)
  const setActive = useActivation(webhook)
  return (
    <>
      <WebhookButtons webhook={webhook} send={send} setActive={setActive}>
        {may('webhook:update') && (
          <Button
            size="compact-md"
            variant="default"
            onClick={() => void navigate({ to: '/webhooks/$id', params: { id }, search: { tab: 'settings' } })}
          >
            {t('webhooks.edit')}
          </Button>
        )}
        <MoreActions onAsk={setAsked} />
        <ApiCall operation="webhook.webhookFindOne" method="GET" path={`/api/v3/webhook/webhook/${id}`} />
      </WebhookButtons>
      <RotateSecret webhook={webhook} isAsked={asked === 'rotate'} onClose={() => setAsked(undefined)} />
      <Removal webhook={webhook} asked={asked} onClose={() => setAsked(undefined)} />
    </>
  )
}

/** Sends a test and opens its delivery. */
export function useTest({ document_id: id }: Webhook) {
  const navigate = useNavigate()
  return useChange({
    make: () => api.webhook.webhookTest({ path: { id } }),
    touches: listTouched(id),
    onDone: ({ data }) =>
      void navigate({
        to: '/deliveries/$id',
        params: { id: data.dispatch_id },
        search: { webhook: id },
        state: BESIDE_OTHER,
      }),
  })
}

/** Deactivates an active webhook, which can be taken back, and activates an inactive one. */
export function useActivation(webhook: Webhook) {
  const { t } = useTranslation()
  const { document_id: id, is_actived } = webhook
  const set = (isActive: boolean) => api.webhook.webhookActive({ path: { id }, body: { is_actived: isActive } })
  return useChange({
    make: () => set(!is_actived),
    touches: listTouched(id),
    notice: () =>
      is_actived
        ? { text: describeDeactivation(webhook, t), undo: () => set(true) }
        : { text: t('webhooks.activated', { name: nameOf(webhook) }) },
  })
}

/** Confirmation before an action. */
export type Question = 'rotate' | 'delete' | 'purge'

/** The answers that a change of a webhook makes untrue. */
const listTouched = (id: string) => [['webhook', id], ['webhooks'], ['deliveries'], ['dashboard']]

function MoreActions({ onAsk }: { onAsk: (question: Question) => void }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button size="compact-md" variant="default" aria-label={t('webhooks.more')}>
          <Icon name="more" />
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {may('webhook:rotate-secret') && <Menu.Item onClick={() => onAsk('rotate')}>{t('webhooks.rotate')}</Menu.Item>}
        {may('webhook:delete') && <Menu.Item onClick={() => onAsk('delete')}>{t('webhooks.delete')}</Menu.Item>}
        {may('webhook:purge') && <Menu.Item onClick={() => onAsk('purge')}>{t('webhooks.purge')}</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  )
}

/** Asks, rotates the secret, and shows the new one once. */
export function RotateSecret({
  webhook,
  isAsked,
  onClose,
}: {
  webhook: Webhook
  isAsked: boolean
  onClose: () => void
}) {
  const path = { id: webhook.document_id }
  const rotate = useChange({
    make: () => api.webhook.webhookRotateSecret({ path }),
    touches: listTouched(webhook.document_id),
    onDone: onClose,
  })
  const dialog = { rotate, name: nameOf(webhook), isAsked, onClose }
  return <RotateDialog {...dialog} variable="SIGNALBOX_WEBHOOK_SECRET" />
}

/** Asks, and deletes or purges the webhook. */
export function Removal({
  webhook,
  asked,
  onClose,
}: {
  webhook: Webhook
  asked: Question | undefined
  onClose: () => void
}) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const path = { id: webhook.document_id }
  const touches = listTouched(webhook.document_id)
  const onDone = () => navigate({ to: '/webhooks' })
  const remove = useChange({ make: () => api.webhook.webhookDelete({ path }), touches, onDone })
  const purge = useChange({ make: () => api.webhook.webhookPurge({ path }), touches, onDone })
  return (
    <>
      <ConfirmDialog
        title={t('webhooks.delete-title', { name: nameOf(webhook) })}
        label={t('webhooks.delete')}
        isOpen={asked === 'delete'}
        onClose={onClose}
        onConfirm={() => remove.mutate(undefined)}
        change={remove}
        typed={nameOf(webhook)}
      >
        {t('webhooks.delete-text')}
      </ConfirmDialog>
      <ConfirmDialog
        title={t('webhooks.purge-title', { name: nameOf(webhook) })}
        label={t('webhooks.purge')}
        isOpen={asked === 'purge'}
        onClose={onClose}
        onConfirm={() => purge.mutate(undefined)}
        change={purge}
        typed={nameOf(webhook)}
      >
        {t('webhooks.purge-text')}
      </ConfirmDialog>
    </>
  )
}
