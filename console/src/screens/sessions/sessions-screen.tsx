import { TextInput } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { escapeFilter } from '../../parts/filter-text.ts'
import { FilterChoice, FilterForm } from '../../parts/form.tsx'
import { Page } from '../../parts/page.tsx'
import { SessionList } from './session-list.tsx'

interface Filters {
  address?: string
  kind?: string
}

/** Every session that is open; without the permission for those of others, the own ones. */
export function SessionsScreen() {
  const { t } = useTranslation()
  const { mayEverywhere, session } = useAccess()
  const isOfAll = mayEverywhere('session:find-all')
  const filters: Filters = useSearch({ from: '/sessions' })
  const navigate = useNavigate()
  const apiFilters = [
    ...(filters.address ? [`address|eq|${escapeFilter(filters.address)}`] : []),
    ...(filters.kind ? [`client_id|null|${filters.kind === 'user'}`] : []),
  ]
  return (
    <Page
      title={t('sessions.title')}
      lead={isOfAll ? t('sessions.lead') : t('sessions.lead-own')}
      actions={
        <ApiCall
          operation="identity.sessionFindAll"
          method="GET"
          path="/api/v3/identity/session"
          {...(apiFilters.length > 0 && { query: { filters: apiFilters } })}
        />
      }
    >
      <FilterBar
        key={JSON.stringify(filters)}
        filters={filters}
        onChoose={(search) => void navigate({ to: '/sessions', search, replace: true })}
      />
      <SessionList filters={apiFilters} {...(!isOfAll && { user: session.user.document_id })} />
    </Page>
  )
}

function FilterBar({ filters, onChoose }: { filters: Filters; onChoose: (next: Filters) => void }) {
  const { t } = useTranslation()
  const [address, setAddress] = useState(filters.address ?? '')
  const choose = (kind: string) =>
    onChoose({ ...(address.trim() && { address: address.trim() }), ...(kind && { kind }) })
  return (
    <FilterForm onApply={() => choose(filters.kind ?? '')}>
      <TextInput
        label={t('audit.address')}
        placeholder="203.0.113.7"
        value={address}
        onChange={({ currentTarget }) => setAddress(currentTarget.value)}
      />
      <FilterChoice
        label={t('sessions.kind')}
        value={filters.kind}
        onChange={choose}
        options={[
          { value: 'user', label: t('sessions.of-user') },
          { value: 'app', label: t('sessions.of-app') },
        ]}
      />
    </FilterForm>
  )
}
