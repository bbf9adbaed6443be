import type { QueryKey } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useChange } from '../../frame/use-change.ts'
import { TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { AccountRoleSelect } from '../../parts/role-select.tsx'

interface MemberFormProps {
  account: string
  /** Description of the field of the email address. */
  hint: string
  /** Label of the button. */
  label: string
  /** The list that the change adds a row to. */
  touches: QueryKey
  send: (email: string, roles: string[]) => Promise<unknown>
  onDone: () => void
}

/** Asks for an email address and roles in an account. */
export function MemberForm({ account, hint, label, touches, send, onDone }: MemberFormProps) {
  const { t } = useTranslation()
  const [email, setEmail] = useState('')
  const [roles, setRoles] = useState<string[]>([])
  const change = useChange({ make: () => send(email.trim(), roles), touches: [touches], onDone })
  return (
    <ChangeForm change={change} label={label}>
      <TextInput
        field="email"
        label={t('users.email')}
        description={hint}
        type="email"
        required
        data-autofocus
        value={email}
        onChange={({ currentTarget }) => setEmail(currentTarget.value)}
      />
      <AccountRoleSelect account={account} value={roles} onChange={setRoles} />
    </ChangeForm>
  )
}
