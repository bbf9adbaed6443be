import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Icon } from '../frame/icons.tsx'

interface ConflictProps {
  /** The difference between what was edited and what stands now. */
  children: ReactNode
  /** Drops the edit. */
  onReload: () => void
  /** Keeps the edit, over what stands now. */
  onOverwrite: () => void
  isRunning?: boolean
}

/** Says that somebody else changed what is being edited, with what follows from that. */
export function ConflictNotice({ children }: { children: ReactNode }) {
  const { t } = useTranslation()
  return (
    <Alert
      color="yellow"
      variant="outline"
      role="alert"
      icon={<Icon name="warn" />}
      title={t('conflict.title')}
      data-testid="conflict"
    >
      {children}
    </Alert>
  )
}

/** Says that somebody else changed what is being edited, and asks which of the two holds. */
export function Conflict({ children, onReload, onOverwrite, isRunning = false }: ConflictProps) {
  const { t } = useTranslation()
  return (
    <ConflictNotice>
      <Stack gap="xs">
        <Text size="sm">{t('conflict.text')}</Text>
        {children}
        <Group gap="xs">
          <Button size="xs" variant="default" onClick={onReload}>
            {t('conflict.reload')}
          </Button>
          <Button size="xs" loading={isRunning} onClick={onOverwrite}>
            {t('conflict.overwrite')}
          </Button>
        </Group>
      </Stack>
    </ConflictNotice>
  )
}
