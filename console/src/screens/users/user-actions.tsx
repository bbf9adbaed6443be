import { Button, Group, Menu, Text } from '@mantine/core'
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
import { ProblemCard } from '../../parts/problem.tsx'

type Asked = 'disable' | 'sign-out' | 'remove-factors' | 'delete'

/** Actions that end the access of a user, and those that restore it. */
export function UserActions({ user }: { user: Schemas['User'] }) {
  const { t } = useTranslation()
  const { may, session } = useAccess()
  const [asked, setAsked] = useState<Asked | undefined>()
  const navigate = useNavigate()
  const close = () => setAsked(undefined)
  const path = { id: user.document_id }
  const touches = [['user', user.document_id], ['users'], ['sessions'], ['keys'], ['grants']]
  const actions: Record<Asked, () => Promise<unknown>> = {
    disable: () => api.identity.userDisable({ path, body: {} }),
    'sign-out': () => api.identity.userRevokeSessions({ path, body: {} }),
    'remove-factors': () => api.identity.userRemoveFactors({ path }),
    delete: () => api.identity.userDelete({ path }),
  }
  const act = useChange({
    make: (asked: Asked) => actions[asked](),
    touches,
    onDone: async () => {
      if (asked === 'delete') await navigate({ to: '/users' })
      close()
    },
  })
  const enable = useChange({ make: () => api.identity.userEnable({ path }), touches })
  const isSelf = session.user.document_id === user.document_id
  const ask = (asked: Asked) => {
    act.reset()
    setAsked(asked)
  }
  return (
    <>
      <Group gap="xs">
        {may('user:revoke-sessions') && (
          <Button size="compact-md" variant="default" onClick={() => ask('sign-out')}>
            {t('users.sign-out')}
          </Button>
        )}
        {user.is_actived
          ? may('user:disable') && (
              <Button size="compact-md" variant="default" disabled={isSelf} onClick={() => ask('disable')}>
                {t('users.disable')}
              </Button>
            )
          : may('user:enable') && (
              <Button size="compact-md" loading={enable.isPending} onClick={() => enable.mutate(undefined)}>
                {t('users.enable')}
              </Button>
            )}
        {!isSelf && <More onAsk={ask} />}
        <ApiCall operation="identity.userFindOne" method="GET" path={`/api/v3/identity/user/${user.document_id}`} />
      </Group>
      {enable.isError && <ProblemCard error={enable.error} />}
      {asked !== undefined && (
        <ConfirmDialog
          title={t(`users.${asked}-title`, { name: user.name ?? user.email })}
          label={t(`users.${asked}`)}
          isOpen
          onClose={close}
          onConfirm={() => act.mutate(asked)}
          change={act}
          {...(asked === 'delete' && { typed: user.email })}
        >
          <Text size="sm">{t(`users.${asked}-text`)}</Text>
        </ConfirmDialog>
      )}
    </>
  )
}

/** Rare actions on a user, and its deletion. */
function More({ onAsk }: { onAsk: (question: 'remove-factors' | 'delete') => void }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  if (!may('user:remove-factors') && !may('user:delete')) return null
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button size="compact-md" variant="default" aria-label={t('webhooks.more')}>
          <Icon name="more" />
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {may('user:remove-factors') && (
          <Menu.Item onClick={() => onAsk('remove-factors')}>{t('users.remove-factors')}</Menu.Item>
        )}
        {may('user:delete') && (
          <Menu.Item c="var(--mantine-color-error)" onClick={() => onAsk('delete')}>
            {t('users.delete')}
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
