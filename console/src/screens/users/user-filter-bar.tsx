import { NativeSelect, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { AccountSelect } from '../../parts/account-select.tsx'
import { FilterChoice, FilterForm } from '../../parts/form.tsx'
import { useAccountNames, useRoles } from '../../parts/names.tsx'
import type { NamedFilter } from '../../parts/no-match.tsx'
import { valueName } from '../../parts/words/value-name.ts'
import type { UserFilters } from './user-filters.ts'

const RANGES = ['24h', '7d', '30d'] as const

/** The filters of the list of users as a form. A choice holds at once, the text with the button. */
export function UserFilterBar({ filters, onChoose }: { filters: UserFilters; onChoose: (next: UserFilters) => void }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [text, setText] = useState(filters.q ?? '')
  const roles = useRoles()
  const providers = useProviderNames()
  const change = (next: UserFilters) => {
    const all = { ...filters, q: text.trim(), ...next }
    onChoose(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '')))
  }
  const choice = (name: keyof UserFilters, label: string, options: readonly (readonly [string, string])[]) => (
    <FilterChoice
      label={label}
      value={filters[name]}
      onChange={(value) => change({ [name]: value })}
      options={options.map(([value, label]) => ({ value, label }))}
    />
  )
  const ranges = RANGES.map((range) => [range, t(`since.${range}`)] as const)
  const states = (['active', 'invited', 'disabled'] as const).map((state) => [state, t(`status.${state}`)] as const)
  return (
    <FilterForm onApply={() => change({})}>
      <NativeSelect
        label={t('users.search-in')}
        value={filters.in ?? ''}
        onChange={({ currentTarget: { value } }) => change({ in: value })}
        data={[
          { value: '', label: t('users.email') },
          { value: 'name', label: t('users.name') },
        ]}
      />
      <TextInput
        label={t('users.part')}
        minLength={3}
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      {choice('state', t('users.state'), states)}
      {may('role:find-all') &&
        choice(
          'role',
          t('users.role'),
          roles.map(({ document_id, name }) => [document_id, name]),
        )}
      {may('account:find-all') && (
        <AccountSelect
          value={filters.account ?? ''}
          onChange={(account) => change({ account })}
          hint=""
          placeholder={t('filters.all')}
        />
      )}
      {may('sign-in-provider:find-all') && choice('provider', t('identities.provider'), providers)}
      {choice('seen', t('users.last-sign-in'), ranges)}
      {choice('created', t('deliveries.created'), ranges)}
    </FilterForm>
  )
}

/** The filters of the list of users by the words of the form. */
export function useUserFilterNames(filters: UserFilters): readonly NamedFilter[] {
  const { t } = useTranslation()
  const roles = useRoles()
  const providers = new Map(useProviderNames())
  const accounts = useAccountNames([filters.account ?? null])
  const { q, state, role, account, provider, seen, created } = filters
  return [
    [filters.in === 'name' ? t('users.name') : t('users.email'), q],
    [t('users.state'), state && valueName('status', state, t)],
    [t('users.role'), role && (roles.find(({ document_id }) => document_id === role)?.name ?? role)],
    [t('account.label'), account && (accounts.get(account) ?? account)],
    [t('identities.provider'), provider && (providers.get(provider) ?? provider)],
    [t('users.last-sign-in'), seen && valueName('since', seen, t)],
    [t('deliveries.created'), created && valueName('since', created, t)],
  ]
}

/** The sign-in providers that are enabled, for those who may know. */
function useProviderNames(): readonly (readonly [name: string, label: string])[] {
  const { may } = useAccess()
  const { data } = useQuery({
    queryKey: ['providers', 'names'],
    queryFn: ({ signal }) => api.identity.signInProviderFindAll({ signal }),
    enabled: may('sign-in-provider:find-all'),
    staleTime: 300_000,
  })
  return data?.data.providers.filter((item) => item.is_enabled).map((item) => [item.name, item.label] as const) ?? []
}
