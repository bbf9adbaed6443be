import { Button, Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { SidePanel } from '../../parts/dialog.tsx'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { useDescriptions } from '../../parts/words/descriptions.ts'

type Role = Schemas['Role']
type Holder = Schemas['RoleHolder']

/** Who has a role, and what deletes it. */
export function RoleHolders({ role, onClose }: { role: Role | undefined; onClose: () => void }) {
  const { may } = useAccess()
  return (
    <SidePanel title={role?.name ?? ''} isOpen={role !== undefined} onClose={onClose}>
      {role && (
        <Stack>
          <Description role={role} />
          {may('role:find-holders') ? (
            <Holders role={role.document_id} />
          ) : (
            <NoPermission permission="role:find-holders" />
          )}
          {!role.is_system && may('role:delete') && <DeleteRole role={role} onDone={onClose} />}
        </Stack>
      )}
    </SidePanel>
  )
}

function Description({ role }: { role: Role }) {
  const { ofRole } = useDescriptions()
  const text = ofRole(role)
  return text === null ? null : <Text size="sm">{text}</Text>
}

function Holders({ role }: { role: string }) {
  const { t } = useTranslation()
  const rows = useRows({
    key: ['roles', role, 'holders'],
    load: (page, signal) => api.identity.roleFindHolders({ path: { id: role }, query: page, signal }),
  })
  const columns: Column<Holder>[] = [
    {
      label: t('users.user'),
      opens: true,
      cell: ({ user, name, email }) => (
        <TextLink to="/users/$id" params={{ id: user }} size="sm">
          {name ?? email}
        </TextLink>
      ),
    },
    {
      label: t('account.label'),
      cell: ({ account, account_name }) =>
        account === null ? (
          t('keys.everywhere')
        ) : (
          <TextLink to="/accounts/$id" params={{ id: account }} size="sm">
            {account_name ?? account}
          </TextLink>
        ),
    },
    { label: t('users.state'), cell: ({ is_actived }) => <Status name={is_actived ? 'active' : 'disabled'} /> },
    { label: t('roles.since'), cell: ({ created_at }) => <Time at={created_at} /> },
  ]
  return (
    <List
      caption={t('roles.holders')}
      columns={columns}
      rows={rows}
      isFiltered={false}
      empty={<Text size="sm">{t('roles.nobody')}</Text>}
    />
  )
}

function DeleteRole({ role, onDone }: { role: Role; onDone: () => void }) {
  const { t } = useTranslation()
  const [isAsked, setIsAsked] = useState(false)
  const remove = useChange({
    make: () => api.identity.roleDelete({ path: { id: role.document_id } }),
    touches: [['roles'], ['session']],
    onDone,
  })
  return (
    <Group>
      <Button size="compact-md" variant="default" onClick={() => setIsAsked(true)}>
        {t('roles.delete')}
      </Button>
      <ConfirmDialog
        title={t('roles.delete-title', { name: role.name })}
        label={t('roles.delete')}
        isOpen={isAsked}
        onClose={() => setIsAsked(false)}
        onConfirm={() => remove.mutate(undefined)}
        change={remove}
        typed={role.name}
      >
        <Text size="sm">{t('roles.delete-text')}</Text>
      </ConfirmDialog>
    </Group>
  )
}
