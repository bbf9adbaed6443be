import { Button, Menu, Stack } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Icon } from '../../frame/icons.tsx'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { describeDeactivation } from '../../parts/words/deactivation.ts'
import { nameOf } from '../../parts/words/webhook-name.ts'
import { RotateDialog } from '../../screens/webhooks/rotate-dialog.tsx'
import { WebhookButtons } from '../../screens/webhooks/webhook-buttons.tsx'
import { tell } from '../host.ts'
import { goTo } from '../route.ts'

type Question = 'rotate' | 'delete'

const listTouched = (id: string) => [['webhook', id], ['webhooks'], ['deliveries'], ['limits']]

/** Actions on a webhook. */
export function WebhookActions({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  const [asked, setAsked] = useState<Question | undefined>()
  const { document_id: id, is_actived } = webhook
  const touches = listTouched(id)
  const send = useChange({
    make: () => api.webhook.webhookTest({ path: { id } }),
    touches,
    onDone: ({ data }) => {
      tell({ type: 'happened', name: 'test-sent', id })
      goTo('deliveries', data.dispatch_id)
    },
  })
  const set = async (isActive: boolean) => {
    await api.webhook.webhookActive({ path: { id }, body: { is_actived: isActive } })
    tell({ type: 'happened', name: 'webhook-changed', id })
  }
  const setActive = useChange({
    make: () => set(!is_actived),
    touches,
    notice: () =>
      is_actived
        ? { text: describeDeactivation(webhook, t), undo: () => set(true) }
        : { text: t('webhooks.activated', { name: nameOf(webhook) }) },
  })
  const isQuiet = !may('webhook:rotate-secret') && !may('webhook:delete')
  return (
    <Stack gap="xs" align="flex-end">
      <WebhookButtons webhook={webhook} send={send} setActive={setActive}>
        {!isQuiet && <MoreActions onAsk={setAsked} />}
      </WebhookButtons>
      <RotateSecret webhook={webhook} isAsked={asked === 'rotate'} onClose={() => setAsked(undefined)} />
      <Removal webhook={webhook} isAsked={asked === 'delete'} onClose={() => setAsked(undefined)} />
    </Stack>
  )
}

function MoreActions({ onAsk }: { onAsk: (question: Question) => void }) {
  const { t } = useTranslation('console')
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
      </Menu.Dropdown>
    </Menu>
  )
}

interface AskedProps {
  isAsked: boolean
  onClose: () => void
}

function RotateSecret({ webhook, isAsked, onClose }: AskedProps & { webhook: Schemas['Webhook'] }) {
  const id = webhook.document_id
  const rotate = useChange({
    make: () => api.webhook.webhookRotateSecret({ path: { id } }),
    touches: listTouched(id),
    onDone: () => {
      tell({ type: 'happened', name: 'secret-rotated', id })
      onClose()
    },
  })
  const dialog = { rotate, name: nameOf(webhook), isAsked, onClose }
  return <RotateDialog {...dialog} variable="WEBHOOK_SECRET" />
}

function Removal({ webhook, isAsked, onClose }: AskedProps & { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation('console')
  const id = webhook.document_id
  const remove = useChange({
    make: () => api.webhook.webhookDelete({ path: { id } }),
    touches: [['webhooks'], ['limits']],
    onDone: () => {
      tell({ type: 'happened', name: 'webhook-deleted', id })
      goTo('webhooks')
    },
  })
  return (
    <ConfirmDialog
      title={t('webhooks.delete-title', { name: nameOf(webhook) })}
      label={t('webhooks.delete')}
      isOpen={isAsked}
      onClose={onClose}
      onConfirm={() => remove.mutate(undefined)}
      change={remove}
      typed={nameOf(webhook)}
    >
      {t('webhooks.delete-text')}
    </ConfirmDialog>
  )
}
