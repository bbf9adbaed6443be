import { Button, Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { escapeFilter } from '../../parts/filter-text.ts'
import { ChangeForm } from '../../parts/form.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { useAccountRoles } from '../../parts/names.tsx'
import { AccountRoleSelect } from '../../parts/role-select.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { MemberForm } from './member-form.tsx'

type Member = Schemas['AccountMember']

const nameOf = (member: Member | undefined) => member?.name ?? member?.email ?? member?.user ?? ''

/** Who belongs to an account, with which roles. */
export function AccountMembers({ account }: { account: string }) {
  const { t } = useTranslation()
  const { may, mayEverywhere } = useAccess()
  const [asked, setAsked] = useState<{ action: 'remove' | 'roles'; member: Member } | 'add' | undefined>()
  const close = () => setAsked(undefined)
  const key = ['members', account]
  const path = { id: account }
  const rows = useRows({
    key,
    load: (page, signal) => api.identity.accountMemberFindAll({ path, query: page, signal }),
  })
  const remove = useChange({
    make: (user: string) => api.identity.accountMemberDelete({ path, body: { user } }),
    touches: [key],
    onDone: close,
  })
  const about = typeof asked === 'object' ? asked : undefined
  return (
    <Stack>
      {mayEverywhere('account-member:create') && (
        <Group>
          <Button size="compact-md" variant="default" onClick={() => setAsked('add')}>
            {t('members.add')}
          </Button>
        </Group>
      )}
      <List
        caption={t('accounts.members')}
        columns={useColumns(account, (action, member) => setAsked({ action, member }))}
        rows={rows}
        isFiltered={false}
        empty={<Text size="sm">{t('members.empty')}</Text>}
      />
      <ConfirmDialog
        title={t('members.remove-title', { name: nameOf(about?.member) })}
        label={t('members.remove')}
        isOpen={about?.action === 'remove'}
        onClose={close}
        onConfirm={() => about && remove.mutate(about.member.user)}
        change={remove}
      >
        <Text size="sm">{t('members.remove-text')}</Text>
      </ConfirmDialog>
      <Dialog title={t('members.add')} isOpen={asked === 'add'} onClose={close}>
        <AddMember account={account} onDone={close} />
      </Dialog>
      <Dialog
        title={t('members.roles-title', { name: nameOf(about?.member) })}
        isOpen={about?.action === 'roles'}
        onClose={close}
      >
        {about && may('account-member:update') && (
          <MemberRoles account={account} member={about.member} onDone={close} />
        )}
      </Dialog>
    </Stack>
  )
}

function useColumns(account: string, ask: (action: 'remove' | 'roles', member: Member) => void): Column<Member>[] {
  const { t } = useTranslation()
  const { may, mayEverywhere } = useAccess()
  const mayChange = may('account-member:update') || may('account-member:delete')
  const roles = new Map(useAccountRoles(account).map(({ document_id, name }) => [document_id, name]))
  const actions: Column<Member> = {
    label: t('list.actions'),
    cell: (member) => (
      <Group gap={4} wrap="nowrap">
        {may('account-member:update') && (
          <Button size="compact-xs" variant="default" onClick={() => ask('roles', member)}>
            {t('members.change')}
          </Button>
        )}
        {may('account-member:delete') && (
          <Button size="compact-xs" variant="default" onClick={() => ask('remove', member)}>
            {t('members.remove')}
          </Button>
        )}
      </Group>
    ),
  }
  return [
    {
      label: t('users.user'),
      opens: mayEverywhere('user:find-one'),
      cell: (member) => (
        <Stack gap={0}>
          {mayEverywhere('user:find-one') ? (
            <TextLink to="/users/$id" params={{ id: member.user }} size="sm" fw={600}>
              {nameOf(member)}
            </TextLink>
          ) : (
            <Text size="sm" fw={600}>
              {nameOf(member)}
            </Text>
          )}
          {member.name !== null && member.email !== null && (
            <Text size="xs" c="dimmed">
              {member.email}
            </Text>
          )}
        </Stack>
      ),
    },
    {
      label: t('members.roles'),
      cell: (member) => member.roles.map((id) => roles.get(id) ?? id.slice(0, 8)).join(', ') || t('users.no-role'),
    },
    { label: t('members.since'), cell: ({ created_at }) => <Time at={created_at} /> },
    ...(mayChange ? [actions] : []),
  ]
}

function MemberRoles({ account, member, onDone }: { account: string; member: Member; onDone: () => void }) {
  const { t } = useTranslation()
  const [roles, setRoles] = useState<string[]>(member.roles)
  const save = useChange({
    make: () => api.identity.accountMemberUpdate({ path: { id: account }, body: { user: member.user, roles } }),
    touches: [['members', account]],
    onDone,
  })
  return (
    <ChangeForm change={save} label={t('settings.save')}>
      <AccountRoleSelect account={account} value={roles} onChange={setRoles} />
    </ChangeForm>
  )
}

/** Finds the user by its address, and adds it. */
function AddMember({ account, onDone }: { account: string; onDone: () => void }) {
  const { t } = useTranslation()
  const add = async (email: string, roles: string[]) => {
    const filters = [`email|eq|${escapeFilter(email)}`]
    const found = (await api.identity.userFindAll({ query: { filters } })).data[0]
    if (!found) throw new Error(t('members.nobody'))
    return api.identity.accountMemberCreate({ path: { id: account }, body: { user: found.document_id, roles } })
  }
  return (
    <MemberForm
      account={account}
      hint={t('members.add-hint')}
      label={t('members.add')}
      touches={['members', account]}
      send={add}
      onDone={onDone}
    />
  )
}
