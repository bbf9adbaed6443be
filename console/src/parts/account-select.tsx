import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../frame/api.ts'
import { useAccess } from '../frame/session.tsx'
import { Select } from './fields.tsx'

/** Chooses an account: of all that the user sees, else of its own. */
export function AccountSelect({
  value,
  onChange,
  hint,
  placeholder,
}: {
  value: string
  onChange: (id: string) => void
  /** In place of that of a webhook. */
  hint?: string
  /** Words for no account, where none may be chosen. Default: an account has to be. */
  placeholder?: string
}) {
  const { t } = useTranslation()
  const { may, session } = useAccess()
  const accounts = useQuery({
    queryKey: ['accounts', 'choice'],
    queryFn: ({ signal }) => api.identity.accountFindAll({ query: { sort: 'name', page_size: 200 }, signal }),
    enabled: may('account:find-all'),
    staleTime: 30_000,
  })
  const shown = accounts.data?.data ?? session.accounts
  return (
    <Select
      field="account"
      label={t('account.label')}
      description={hint ?? t('account.hint')}
      data={shown.map(({ document_id, name }) => ({ value: document_id, label: name }))}
      value={value === '' ? null : value}
      onChange={(id) => onChange(id ?? '')}
      searchable
      {...(placeholder !== undefined && { placeholder, clearable: true })}
      nothingFoundMessage={t('account.none')}
    />
  )
}
