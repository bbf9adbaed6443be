import { Button, Center, Stack, Text, Title } from '@mantine/core'
import { ConnectionError, ProblemError } from '@signalbox/client'
import { useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { ProblemCard } from '../parts/problem.tsx'
import { Icon } from './icons.tsx'

/** Interval between tries while the service does not answer, ms. */
const RETRY_MS = 5_000

type FaultKind = 'offline' | 'maintenance' | 'fault'

/** Kind of a fault in which no screen can be shown: no connection, a service that says 503, or anything else. Pure. */
function faultOf(error: unknown): FaultKind {
  if (error instanceof ConnectionError) return 'offline'
  return error instanceof ProblemError && error.status === 503 ? 'maintenance' : 'fault'
}

/** Page in place of the console while the service does not answer. It tries again by itself, and comes back. */
export function ServiceFault({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  const { t } = useTranslation()
  const kind = faultOf(error)
  useEffect(() => {
    if (kind === 'fault') return
    const timer = setInterval(onRetry, RETRY_MS)
    return () => clearInterval(timer)
  }, [kind, onRetry])
  return (
    <Center component="main" mih="100vh" p="md">
      <Stack maw={520} gap="sm">
        <Icon name="warn" size={28} />
        <Title order={1}>{t(`fault.${kind}`)}</Title>
        <Text size="sm" role="status">
          {t(`fault.${kind}-text`)}
        </Text>
        {kind === 'fault' ? (
          <ProblemCard error={error} onRetry={onRetry} />
        ) : (
          <Button variant="default" onClick={onRetry} style={{ alignSelf: 'flex-start' }}>
            {t('problem.retry')}
          </Button>
        )}
      </Stack>
    </Center>
  )
}
