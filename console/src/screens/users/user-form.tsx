import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { EditForm } from '../../parts/edit-form.tsx'
import { PasswordInput, TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { useRoles } from '../../parts/names.tsx'
import { RoleSelect } from '../../parts/role-select.tsx'
import { useRowEdit } from '../../parts/row-edit.ts'

/** Registers a user. */
export function CreateUserForm({ onDone }: { onDone: (id: string) => void }) {
  const { t } = useTranslation()
  const [draft, setDraft] = useState({ email: '', name: '', password: '', roles: [] as string[] })
  const create = useChange({
    make: () => {
      const { email, name, password, roles } = draft
      const body = {
        email: email.trim(),
        ...(name.trim() && { name: name.trim() }),
        ...(password && { password }),
        roles,
      }
      return api.identity.userCreate({ body })
    },
    touches: [['users']],
    onDone: ({ data }) => onDone(data.document_id),
  })
  const change = (part: Partial<typeof draft>) => setDraft({ ...draft, ...part })
  return (
    <ChangeForm change={create} label={t('users.create')}>
      <TextInput
        field="email"
        label={t('users.email')}
        type="email"
        required
        data-autofocus
        value={draft.email}
        onChange={({ currentTarget: { value } }) => change({ email: value })}
      />
      <TextInput
        field="name"
        label={t('users.name')}
        value={draft.name}
        onChange={({ currentTarget: { value } }) => change({ name: value })}
      />
      <RoleSelect value={draft.roles} onChange={(roles) => change({ roles })} />
      <PasswordInput
        field="password"
        label={t('users.password')}
        description={t('users.password-hint')}
        autoComplete="new-password"
        value={draft.password}
        onChange={({ currentTarget: { value } }) => change({ password: value })}
      />
    </ChangeForm>
  )
}

const fieldsOf = (user: Schemas['User']) => ({
  email: user.email,
  name: user.name ?? '',
  roles: [...user.roles].sort(),
})

/** Changes name, address and roles of a user. */
export function EditUserForm({ user }: { user: Schemas['User'] }) {
  const { t } = useTranslation()
  const path = { id: user.document_id }
  const roleNames = useRoles()
  const edit = useRowEdit({
    row: user,
    queryKey: ['user', user.document_id],
    fieldsOf,
    send: ({ email, name, roles }, ifMatch) => {
      const body = {
        ...(email !== undefined && { email: email.trim() }),
        ...(name !== undefined && { name: name.trim() || null }),
        ...(roles && { roles }),
      }
      return api.identity.userUpdate({ path, body, ifMatch })
    },
    touches: [['users']],
  })
  const { draft, change } = edit
  const nameRoles = (roles: readonly string[]) =>
    roles.map((id) => roleNames.find(({ document_id }) => document_id === id)?.name ?? id)
  return (
    <EditForm
      edit={edit}
      labels={{ email: t('users.email'), name: t('users.name'), roles: t('roles.title') }}
      show={{ roles: (roles) => nameRoles(roles).join(', ') }}
      maxWidth={480}
    >
      <TextInput
        field="name"
        label={t('users.name')}
        value={draft.name}
        onChange={({ currentTarget: { value } }) => change({ name: value })}
      />
      <TextInput
        field="email"
        label={t('users.email')}
        description={t('users.email-hint')}
        type="email"
        required
        value={draft.email}
        onChange={({ currentTarget: { value } }) => change({ email: value })}
      />
      <RoleSelect value={draft.roles} onChange={(roles) => change({ roles: roles.toSorted() })} />
    </EditForm>
  )
}
