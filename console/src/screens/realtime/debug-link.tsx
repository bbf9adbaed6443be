import { Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { CopyText } from '../../parts/copy-text.tsx'
import { buildDebugLink, DEBUG } from './debug-url.ts'

/** Builds the debug link of an app's page, and names the flag that does the same. */
export function DebugLink() {
  const { t } = useTranslation()
  const [page, setPage] = useState(`${location.origin}/`)
  const link = buildDebugLink(page)
  return (
    <Stack gap="xs">
      <TextInput
        label={t('realtime.debug-page')}
        description={t('realtime.debug')}
        error={link === undefined && t('realtime.debug-wrong')}
        value={page}
        onChange={({ currentTarget }) => setPage(currentTarget.value)}
        autoComplete="off"
      />
      {link !== undefined && <CopyText text={link} />}
      <Text size="sm" c="dimmed">
        {t('realtime.debug-flag')}
      </Text>
      <CopyText text={`localStorage.setItem('${DEBUG}', '1')`} />
    </Stack>
  )
}
