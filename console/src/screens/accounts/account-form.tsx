import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useChange } from '../../frame/use-change.ts'
import { TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'

/** Asks for the name of an account. */
export function AccountForm<Answer>({
  label,
  name = '',
  send,
  onDone,
}: {
  label: string
  name?: string
  send: (name: string) => Promise<Answer>
  onDone: (answer: Answer) => void
}) {
  const { t } = useTranslation()
  const [text, setText] = useState(name)
  const save = useChange({ make: () => send(text.trim()), touches: [['accounts'], ['account']], onDone })
  return (
    <ChangeForm change={save} label={label} isDisabled={text.trim() === '' || text.trim() === name}>
      <TextInput
        field="name"
        label={t('accounts.name')}
        required
        data-autofocus
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
    </ChangeForm>
  )
}
