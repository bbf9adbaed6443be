import { Button, Group } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useAccess } from '../../frame/session.tsx'
import { ProblemCard } from '../../parts/problem.tsx'

/** An action that a button starts. */
interface Action {
  isPending: boolean
  error: Error | null
  mutate: (input: undefined) => void
}

/** Buttons that test a webhook and switch it, with further ones behind, and what went wrong. */
export function WebhookButtons({
  webhook,
  send,
  setActive,
  children,
}: {
  webhook: Pick<Schemas['Webhook'], 'is_actived'>
  send: Action
  setActive: Action
  children: ReactNode
}) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  return (
    <>
      <Group gap="xs">
        {may('webhook:test') && (
          <Button size="compact-md" loading={send.isPending} onClick={() => send.mutate(undefined)}>
            {t('webhooks.test')}
          </Button>
        )}
        {may('webhook:active') && (
          <Button
            size="compact-md"
            variant="default"
            loading={setActive.isPending}
            onClick={() => setActive.mutate(undefined)}
          >
            {webhook.is_actived ? t('webhooks.deactivate') : t('webhooks.activate')}
          </Button>
        )}
        {children}
      </Group>
      {[send.error, setActive.error].map((error) => error && <ProblemCard key={error.message} error={error} />)}
    </>
  )
}
