import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { PasswordInput, TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { RoleSelect } from '../../parts/role-select.tsx'

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

/** Changes name, address and roles of a user. */
export function EditUserForm({ user }: { user: Schemas['User'] }) {
  const { t } = useTranslation()
  const before = { email: user.email, name: user.name ?? '', roles: user.roles }
  const [draft, setDraft] = useState(before)
  const isSameRoles = [...draft.roles].sort().join() === [...before.roles].sort().join()
  const body = {
    ...(draft.email.trim() !== before.email && { email: draft.email.trim() }),
    ...(draft.name.trim() !== before.name && { name: draft.name.trim() || null }),
    ...(!isSameRoles && { roles: draft.roles }),
  }
  const save = useChange({
    make: () => api.identity.userUpdate({ path: { id: user.document_id }, body }),
    touches: [['user', user.document_id], ['users']],
  })
  return (
    <ChangeForm
      change={save}
      label={t('settings.save')}
      isDisabled={Object.keys(body).length === 0}
      buttonAt="start"
      maxWidth={480}
    >
      <TextInput
        field="name"
        label={t('users.name')}
        value={draft.name}
        onChange={({ currentTarget: { value } }) => setDraft({ ...draft, name: value })}
      />
      <TextInput
        field="email"
        label={t('users.email')}
        description={t('users.email-hint')}
        type="email"
        required
        value={draft.email}
        onChange={({ currentTarget: { value } }) => setDraft({ ...draft, email: value })}
      />
      <RoleSelect value={draft.roles} onChange={(roles) => setDraft({ ...draft, roles })} />
    </ChangeForm>
  )
}
