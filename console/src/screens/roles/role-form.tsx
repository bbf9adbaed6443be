import { Checkbox } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { Textarea, TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'

/** Makes a role without permissions; the matrix gives it some. */
export function RoleForm({ onDone }: { onDone: () => void }) {
  const { t } = useTranslation()
  const [draft, setDraft] = useState({ name: '', description: '', isOfAccount: false, needsFactor: false })
  const create = useChange({
    make: () => {
      const body = {
        name: draft.name.trim(),
        description: draft.description.trim() || null,
        permissions: [],
        is_account_scoped: draft.isOfAccount,
        requires_second_factor: draft.needsFactor,
      }
      return api.identity.roleCreate({ body })
    },
    touches: [['roles']],
    onDone,
  })
  return (
    <ChangeForm change={create} label={t('roles.create')}>
      <TextInput
        field="name"
        label={t('roles.name')}
        required
        data-autofocus
        value={draft.name}
        onChange={({ currentTarget: { value } }) => setDraft({ ...draft, name: value })}
      />
      <Textarea
        field="description"
        label={t('create.description')}
        value={draft.description}
        onChange={({ currentTarget: { value } }) => setDraft({ ...draft, description: value })}
      />
      <Checkbox
        label={t('roles.of-account')}
        description={t('roles.of-account-text')}
        checked={draft.isOfAccount}
        onChange={({ currentTarget: { checked } }) => setDraft({ ...draft, isOfAccount: checked })}
      />
      <Checkbox
        label={t('roles.needs-factor')}
        description={t('roles.needs-factor-text')}
        checked={draft.needsFactor}
        onChange={({ currentTarget: { checked } }) => setDraft({ ...draft, needsFactor: checked })}
      />
    </ChangeForm>
  )
}
