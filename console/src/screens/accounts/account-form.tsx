import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { EditForm } from '../../parts/edit-form.tsx'
import { TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { useRowEdit } from '../../parts/row-edit.ts'

/** Makes an account. */
export function CreateAccountForm({ onDone }: { onDone: (id: string) => void }) {
  const { t } = useTranslation()
  const [name, setName] = useState('')
  const create = useChange({
    make: () => api.identity.accountCreate({ body: { name: name.trim() } }),
    touches: [['accounts'], ['account']],
    onDone: ({ data }) => onDone(data.document_id),
  })
  return (
    <ChangeForm change={create} label={t('accounts.create')} isDisabled={name.trim() === ''}>
      <NameInput value={name} onChange={setName} />
    </ChangeForm>
  )
}

/** Renames an account. */
export function RenameAccountForm({ account, onDone }: { account: Schemas['Account']; onDone: () => void }) {
  const { t } = useTranslation()
  const path = { id: account.document_id }
  const edit = useRowEdit({
    row: account,
    queryKey: ['account', account.document_id],
    fieldsOf: ({ name }) => ({ name }),
    send: ({ name = '' }, ifMatch) => api.identity.accountUpdate({ path, body: { name: name.trim() }, ifMatch }),
    touches: [['accounts']],
    onDone,
  })
  return (
    <EditForm edit={edit} labels={{ name: t('accounts.name') }} isWrong={edit.draft.name.trim() === ''} buttonAt="end">
      <NameInput value={edit.draft.name} onChange={(name) => edit.change({ name })} />
    </EditForm>
  )
}

function NameInput({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  const { t } = useTranslation()
  return (
    <TextInput
      field="name"
      label={t('accounts.name')}
      required
      data-autofocus
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  )
}
