import { Button, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'

type Provider = Schemas['SignInProvider']

/** How often the outcomes are read again while a test runs, and how long it is waited for, ms. */
const FOLLOW_MS = 2_000
const WAIT_MS = 120_000

const failuresOf = ({ failures }: Provider) => failures.reduce((sum, { count }) => sum + count, 0)

/** Opens the real flow of a provider in a new tab, and says what the service counted of it since. */
export function TestSignIn({ provider, url }: { provider: Provider; url: string }) {
  const { t } = useTranslation()
  const queries = useQueryClient()
  const [before, setBefore] = useState<Provider | undefined>()
  const isOver =
    before !== undefined && (provider.successes > before.successes || failuresOf(provider) > failuresOf(before))
  const isWaiting = before !== undefined && !isOver
  useEffect(() => {
    if (!isWaiting) return
    const timer = setInterval(() => void queries.invalidateQueries({ queryKey: ['providers'] }), FOLLOW_MS)
    const end = setTimeout(() => clearInterval(timer), WAIT_MS)
    return () => {
      clearInterval(timer)
      clearTimeout(end)
    }
  }, [isWaiting, queries])
  const outcome = isWaiting ? 'waits' : provider.successes > (before?.successes ?? 0) ? 'succeeded' : 'refused'
  return (
    <Stack gap={4} align="flex-start">
      <Button
        component="a"
        href={url}
        target="_blank"
        rel="noopener"
        size="compact-sm"
        variant="default"
        onClick={() => setBefore(provider)}
      >
        {t('providers.try')}
      </Button>
      <Text size="xs" c="dimmed" role="status">
        {before === undefined ? t('providers.try-text') : t(`providers.try-${outcome}`)}
      </Text>
    </Stack>
  )
}
