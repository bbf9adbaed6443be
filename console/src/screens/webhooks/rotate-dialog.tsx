import { Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { ConfirmDialog, SecretDialog } from '../../parts/dialogs.tsx'

interface RotateDialogProps {
  rotate: {
    mutate: (input: undefined) => void
    reset: () => void
    isPending: boolean
    error: unknown
    data?: { data: { secret: string | null } } | undefined
  }
  /** Name of the webhook. */
  name: string
  /** Name of the environment variable that holds the secret. */
  variable: string
  isAsked: boolean
  onClose: () => void
}

/** Asks, rotates the secret of a webhook, and shows the new one once. */
export function RotateDialog({ rotate, name, variable, isAsked, onClose }: RotateDialogProps) {
  const { t } = useTranslation('console')
  const secret = rotate.data?.data.secret
  return (
    <>
      <ConfirmDialog
        title={t('webhooks.rotate-title', { name })}
        label={t('webhooks.rotate')}
        isOpen={isAsked}
        onClose={onClose}
        onConfirm={() => rotate.mutate(undefined)}
        change={rotate}
      >
        {t('webhooks.rotate-text')}
      </ConfirmDialog>
      {secret && (
        <SecretDialog title={t('create.secret')} name={variable} secret={secret} onDone={() => rotate.reset()}>
          <Text size="sm">{t('webhooks.rotated')}</Text>
        </SecretDialog>
      )}
    </>
  )
}
