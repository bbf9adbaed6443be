import { Text, TextInput } from '@mantine/core'
import { Outlet, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { FilterChoice, FilterForm } from '../../parts/form.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { List } from '../../parts/list.tsx'
import type { NamedFilter } from '../../parts/no-match.tsx'
import { Page } from '../../parts/page.tsx'
import { valueName } from '../../parts/words/value-name.ts'
import { useProvisioned, useProvisionedColumns } from './provisioned-rows.tsx'
import { Redrive } from './redrive.tsx'
import { Sections } from './sections.tsx'
import { useTargetNames } from './targets.ts'

const STATUSES = ['pending', 'retrying', 'delivered', 'failed', 'dead_letter', 'cancelled'] as const

interface Filters {
  status?: string
  target?: string
  user?: string
  job?: string
}

/** The ledger of provisioning: each change of a user for each target. */
export const ProvisionedScreen = guardScreen('provisioning-delivery:find-all', 'provisioning.deliveries', Provisioned)

function Provisioned() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const filters: Filters = useSearch({ from: '/provisioning/deliveries' })
  const navigate = useNavigate()
  const choose = (next: Filters) => void navigate({ to: '/provisioning/deliveries', search: next, replace: true })
  const apiFilters = Object.entries(filters).map(([name, value]) => `${name}|eq|${value}`)
  const rows = useProvisioned(apiFilters)
  const columns = useProvisionedColumns(rows.shown)
  const targets = useTargetNames()
  const named: NamedFilter[] = [
    [t('deliveries.status'), filters.status && valueName('status', filters.status, t)],
    [t('provisioning.one'), filters.target && (targets.get(filters.target) ?? filters.target)],
    [t('users.id'), filters.user],
    [t('provisioning.job'), filters.job],
  ]
  const isDead = filters.status === 'dead_letter'
  return (
    <Page
      title={isDead ? t('provisioning.dead') : t('provisioning.deliveries')}
      lead={isDead ? t('provisioning.dead-lead') : t('provisioning.deliveries-lead')}
      actions={
        <>
          {may('provisioning-target:redrive') && <Redrive target={filters.target} />}
          <ApiCall
            operation="provisioning.provisioningDeliveryFindAll"
            method="GET"
            path="/api/v3/provisioning/delivery"
            query={{ sort: '-created_at', ...(apiFilters.length > 0 && { filters: apiFilters }) }}
          />
        </>
      }
    >
      <Sections current={isDead ? 'provisioning.dead' : 'deliveries.title'} />
      <FilterBar key={JSON.stringify(filters)} filters={filters} onChoose={choose} />
      <List
        name="provisioned"
        caption={t('provisioning.deliveries')}
        columns={columns}
        rows={rows}
        isFiltered={apiFilters.length > 0}
        filters={named}
        onClear={() => choose({})}
        empty={<Text size="sm">{t('provisioning.nothing-sent')}</Text>}
      />
      <Outlet />
    </Page>
  )
}

function FilterBar({ filters, onChoose }: { filters: Filters; onChoose: (next: Filters) => void }) {
  const { t } = useTranslation()
  const names = useTargetNames()
  const [user, setUser] = useState(filters.user ?? '')
  const change = (name: keyof Filters, value: string) => {
    const { [name]: _, ...rest } = filters
    onChoose(value === '' ? rest : { ...rest, [name]: value })
  }
  return (
    <FilterForm
      onApply={() => change('user', user.trim())}
      onClear={Object.keys(filters).length > 0 ? () => onChoose({}) : undefined}
    >
      <FilterChoice
        label={t('deliveries.status')}
        value={filters.status}
        onChange={(value) => change('status', value)}
        options={STATUSES.map((value) => ({ value, label: t(`status.${value}`) }))}
      />
      <FilterChoice
        label={t('provisioning.one')}
        value={filters.target}
        onChange={(value) => change('target', value)}
        options={[...names].map(([value, label]) => ({ value, label }))}
      />
      <TextInput label={t('users.id')} value={user} onChange={({ currentTarget }) => setUser(currentTarget.value)} />
    </FilterForm>
  )
}
