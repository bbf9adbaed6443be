import { Button, Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { AskingButton } from '../../parts/asking-button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { UserLink, useUsers } from '../../parts/names.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'
import { MemberForm } from './member-form.tsx'

type Invitation = Schemas['AccountInvitation']

/** Who was invited to an account by mail, and what came of it. */
export function AccountInvitations({ account }: { account: string }) {
  const { t } = useTranslation()
  const [isOpen, setIsOpen] = useState(false)
  const key = ['invitations', account]
  const rows = useRows({
    key,
    load: (page, signal) => api.identity.accountInvitationFindAll({ path: { id: account }, query: page, signal }),
  })
  const users = useUsers(rows.shown.map(({ invited_by }) => invited_by))
  const columns: Column<Invitation>[] = [
    { label: t('users.email'), cell: ({ email }) => email },
    { label: t('users.state'), cell: ({ status }) => <Status name={status} /> },
    { label: t('invitations.by'), cell: ({ invited_by }) => <UserLink id={invited_by} users={users} /> },
    { label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
    { label: t('sessions.expires'), cell: ({ expires_at }) => <Time at={expires_at} /> },
    {
      label: t('list.actions'),
      cell: ({ document_id, email, status }) =>
        status === 'open' && (
          <AskingButton
            label={t('keys.revoke')}
            title={t('invitations.revoke-title', { email })}
            text={t('invitations.revoke-text')}
            make={() => api.identity.accountInvitationDelete({ path: { id: account, invitation: document_id } })}
            touches={[key]}
            size="compact-xs"
          />
        ),
    },
  ]
  return (
    <Stack>
      <Group>
        <Button size="compact-md" variant="default" onClick={() => setIsOpen(true)}>
          {t('invitations.new')}
        </Button>
      </Group>
      <List
        caption={t('accounts.invitations')}
        columns={columns}
        rows={rows}
        isFiltered={false}
        empty={<Text size="sm">{t('invitations.empty')}</Text>}
      />
      <Dialog title={t('invitations.new')} isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <MemberForm
          account={account}
          hint={t('invitations.hint')}
          label={t('invitations.send')}
          touches={key}
          send={(email, roles) =>
            api.identity.accountInvitationCreate({ path: { id: account }, body: { email, roles } })
          }
          onDone={() => setIsOpen(false)}
        />
      </Dialog>
    </Stack>
  )
}
