import { Button, List, Text } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import type { Connection } from './draft.ts'

type Asked = 'enable' | 'disable' | 'enforce' | 'unenforce' | 'delete'

/** Consequences, a text for each line. */
const CLOSES = ['ways', 'sessions', 'keys', 'operators'] as const

/** Consequences of each action. */
const BODIES = {
  enable: { is_enabled: true },
  disable: { is_enabled: false },
  enforce: { is_enforced: true },
  unenforce: { is_enforced: false },
} as const

/** The actions on a connection; each is asked about first. */
export function ConnectionActions({ connection }: { connection: Connection }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [asked, setAsked] = useState<Asked>()
  const offered: Asked[] = [
    ...(may('connection:update')
      ? [connection.is_enabled ? 'disable' : 'enable', connection.is_enforced ? 'unenforce' : 'enforce']
      : []),
    ...(may('connection:delete') ? ['delete'] : []),
  ] as Asked[]
  return (
    <>
      {offered.map((name) => (
        <Button key={name} variant="default" size="compact-md" onClick={() => setAsked(name)}>
          {t(`connections.${name}`)}
        </Button>
      ))}
      {asked !== undefined && asked !== 'delete' && (
        <Change connection={connection} action={asked} onClose={() => setAsked(undefined)} />
      )}
      {asked === 'delete' && <Delete connection={connection} onClose={() => setAsked(undefined)} />}
    </>
  )
}

interface AskProps {
  connection: Connection
  onClose: () => void
}

function Change({ connection, action, onClose }: AskProps & { action: Exclude<Asked, 'delete'> }) {
  const { t } = useTranslation()
  const { account, document_id, name } = connection
  const change = useChange({
    make: () => api.identity.connectionUpdate({ path: { id: account, connection: document_id }, body: BODIES[action] }),
    touches: [
      ['connection', document_id],
      ['connections', account],
    ],
    onDone: onClose,
  })
  return (
    <ConfirmDialog
      title={t(`connections.${action}-title`, { name })}
      label={t(`connections.${action}`)}
      isOpen
      onClose={onClose}
      onConfirm={() => change.mutate(undefined)}
      change={change}
      {...(action === 'enforce' && { typed: name })}
    >
      <Text size="sm">{t(`connections.${action}-text`)}</Text>
      {action === 'enforce' && (
        <List size="sm" mt="xs">
          {CLOSES.map((what) => (
            <List.Item key={what}>{t(`connections.closes.${what}`)}</List.Item>
          ))}
        </List>
      )}
    </ConfirmDialog>
  )
}

function Delete({ connection, onClose }: AskProps) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { account, document_id, name } = connection
  const remove = useChange({
    make: () => api.identity.connectionDelete({ path: { id: account, connection: document_id } }),
    touches: [['connections', account]],
    onDone: () => navigate({ to: '/accounts/$id', params: { id: account }, search: { tab: 'sign-in' } }),
  })
  return (
    <ConfirmDialog
      title={t('connections.delete-title', { name })}
      label={t('connections.delete')}
      isOpen
      onClose={onClose}
      onConfirm={() => remove.mutate(undefined)}
      change={remove}
      typed={name}
    >
      <Text size="sm">{t('connections.delete-text')}</Text>
    </ConfirmDialog>
  )
}
