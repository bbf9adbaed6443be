import { Button, Group, Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { answerLeaving, useIsAskedToLeave } from '../frame/unsaved.ts'
import { Dialog } from './dialog.tsx'

/** Asks whether entries that are not saved may go. */
export function LeaveDialog() {
  const { t } = useTranslation('console')
  return (
    <Dialog title={t('unsaved.title')} isOpen={useIsAskedToLeave()} onClose={() => answerLeaving(false)} isAbove>
      <Stack>
        <Text size="sm">{t('unsaved.text')}</Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={() => answerLeaving(true)}>
            {t('unsaved.drop')}
          </Button>
          <Button data-autofocus onClick={() => answerLeaving(false)}>
            {t('unsaved.stay')}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  )
}
