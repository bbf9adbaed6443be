import { Text } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { ConfirmDialog, SecretDialog } from '../../parts/dialogs.tsx'
import { nameOf, type Target } from './targets.ts'

interface AskProps {
  target: Target
  onClose: () => void
}

/** A question about a target, with the call behind it. */
function Ask({
  title,
  label,
  typed,
  change,
  onClose,
  children,
}: {
  title: string
  label: string
  typed?: string
  change: { mutate: (input: undefined) => void; isPending: boolean; error: unknown }
  onClose: () => void
  children: ReactNode
}) {
  return (
    <ConfirmDialog
      title={title}
      label={label}
      isOpen
      onClose={onClose}
      onConfirm={() => change.mutate(undefined)}
      change={change}
      {...(typed !== undefined && { typed })}
    >
      <Text size="sm">{children}</Text>
    </ConfirmDialog>
  )
}

/** Asks, starts a job of a target, and opens its jobs. */
export function StartJob({ target, kind, onClose }: AskProps & { kind: 'sync' | 'reconcile' }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const path = { id: target.document_id }
  const start = useChange({
    make: () =>
      kind === 'sync'
        ? api.provisioning.provisioningTargetSync({ path })
        : api.provisioning.provisioningTargetReconcile({ path }),
    touches: [['provisioning-jobs']],
    onDone: () => void navigate({ to: '/provisioning/jobs', search: { target: path.id } }),
  })
  return (
    <Ask
      title={t(`provisioning.${kind}-title`, { name: nameOf(target) })}
      label={t(`provisioning.${kind}`)}
      change={start}
      onClose={onClose}
    >
      {t(`provisioning.${kind}-text`)}
    </Ask>
  )
}

/** Asks, and activates or deactivates a target. */
export function ActivateTarget({ target, onClose }: AskProps) {
  const { t } = useTranslation()
  const path = { id: target.document_id }
  const act = target.is_actived ? 'deactivate' : 'activate'
  const set = (isActive: boolean) => api.provisioning.provisioningTargetActive({ path, body: { is_actived: isActive } })
  const change = useChange({
    make: () => set(!target.is_actived),
    touches: [['target', path.id], ['targets']],
    onDone: onClose,
    notice: () =>
      target.is_actived
        ? { text: t('provisioning.deactivated', { name: nameOf(target) }), undo: () => set(true) }
        : undefined,
  })
  return (
    <Ask
      title={t(`provisioning.${act}-title`, { name: nameOf(target) })}
      label={t(`webhooks.${act}`)}
      change={change}
      onClose={onClose}
    >
      {target.is_actived ? t('provisioning.rests') : t('provisioning.goes-on')}
    </Ask>
  )
}

/** Asks, rotates the secret of a target, and shows the new one once. */
export function RotateTargetSecret({ target, onClose }: AskProps) {
  const { t } = useTranslation()
  const path = { id: target.document_id }
  const rotate = useChange({
    make: () => api.provisioning.provisioningTargetRotateSecret({ path }),
    touches: [['target', path.id]],
  })
  const secret = rotate.data?.data.secret
  if (secret)
    return (
      <SecretDialog
        title={t('provisioning.secret')}
        name="SIGNALBOX_PROVISIONING_SECRET"
        secret={secret}
        onDone={onClose}
      >
        <Text size="sm">{t('webhooks.rotated')}</Text>
      </SecretDialog>
    )
  return (
    <Ask
      title={t('webhooks.rotate-title', { name: nameOf(target) })}
      label={t('webhooks.rotate')}
      change={rotate}
      onClose={onClose}
    >
      {t('webhooks.rotate-text')}
    </Ask>
  )
}

/** Asks, and deletes a target. */
export function DeleteTarget({ target, onClose }: AskProps) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const path = { id: target.document_id }
  const remove = useChange({
    make: () => api.provisioning.provisioningTargetDelete({ path }),
    touches: [['targets'], ['health']],
    onDone: () => navigate({ to: '/provisioning' }),
  })
  return (
    <Ask
      title={t('provisioning.delete-title', { name: nameOf(target) })}
      label={t('webhooks.delete')}
      typed={nameOf(target)}
      change={remove}
      onClose={onClose}
    >
      {t('provisioning.delete-text')}
    </Ask>
  )
}
