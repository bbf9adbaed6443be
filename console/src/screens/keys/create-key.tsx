import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { CreateButton } from '../../parts/create-button.tsx'
import { SecretDialog } from '../../parts/dialogs.tsx'
import { NativeSelect, Select, TagsInput, TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { usePermissions } from './permissions.ts'

const DAY_MS = 86_400_000

/** Lifetimes that are offered, in days. */
const LIFETIMES = ['30', '90', '365', ''] as const

/** A button that makes an API key of the user, and shows the key once. */
export function CreateKey() {
  const { t } = useTranslation()
  const [made, setMade] = useState<string | undefined>()
  return (
    <>
      <CreateButton label={t('keys.new')}>
        {(close) => (
          <KeyForm
            onMade={(key) => {
              close()
              setMade(key)
            }}
          />
        )}
      </CreateButton>
      {made !== undefined && (
        <SecretDialog title={t('keys.key')} name="SIGNALBOX_TOKEN" secret={made} onDone={() => setMade(undefined)} />
      )}
    </>
  )
}

function KeyForm({ onMade }: { onMade: (key: string) => void }) {
  const { t } = useTranslation()
  const { session } = useAccess()
  const [name, setName] = useState('')
  const [permissions, setPermissions] = useState<string[]>([])
  const [account, setAccount] = useState<string | null>(null)
  const [days, setDays] = useState<string>('90')
  const known = usePermissions().data ?? []
  const resources = [...new Set(known.map((item) => `${item.split(':')[0]}:*`))]
  const create = useChange({
    make: () => {
      const expires_at = days === '' ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString()
      return api.identity.apiKeyCreate({ body: { name: name.trim(), permissions, account, expires_at } })
    },
    touches: [['keys']],
    onDone: ({ data }) => {
      if (data.key !== null) onMade(data.key)
    },
  })
  return (
    <ChangeForm change={create} label={t('keys.create')} isDisabled={permissions.length === 0}>
      <TextInput
        field="name"
        label={t('keys.name')}
        description={t('keys.name-hint')}
        required
        data-autofocus
        value={name}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <TagsInput
        field="permissions"
        label={t('keys.permissions')}
        description={t('keys.permissions-hint')}
        required
        data={[...resources, ...known]}
        value={permissions}
        onChange={setPermissions}
        limit={20}
      />
      <Select
        field="account"
        label={t('account.label')}
        description={t('keys.account-hint')}
        placeholder={t('keys.everywhere')}
        clearable
        data={session.accounts.map(({ document_id, name: label }) => ({ value: document_id, label }))}
        value={account}
        onChange={setAccount}
      />
      <NativeSelect
        field="expires_at"
        label={t('sessions.expires')}
        value={days}
        onChange={({ currentTarget }) => setDays(currentTarget.value)}
        data={LIFETIMES.map((lifetime) => ({
          value: lifetime,
          label: lifetime === '' ? t('keys.never') : t('keys.days', { count: Number(lifetime) }),
        }))}
      />
    </ChangeForm>
  )
}
