import { Text, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { CreateButton } from '../../parts/create-button.tsx'
import { escapeFilter } from '../../parts/filter-text.ts'
import { FilterForm } from '../../parts/form.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { Page } from '../../parts/page.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { useFigureColumns } from './account-figures.tsx'
import { CreateAccountForm } from './account-form.tsx'

/** List of accounts. */
export const AccountsScreen = guardScreen('account:find-all', 'accounts.title', Accounts)

function Accounts() {
  const { t } = useTranslation()
  const { mayEverywhere } = useAccess()
  const { q = '' } = useSearch({ from: '/accounts' })
  const navigate = useNavigate()
  const choose = (text: string) =>
    void navigate({ to: '/accounts', search: text === '' ? {} : { q: text }, replace: true })
  const filters = q === '' ? [] : [`name|like|${escapeFilter(q)}`]
  const query = { sort: '-created_at' as const, ...(filters.length > 0 && { filters }) }
  const rows = useRows({
    key: ['accounts', ...filters],
    load: (page, signal) => api.identity.accountFindAll({ query: { ...query, ...page }, signal }),
  })
  const columns: Column<Schemas['Account']>[] = [
    {
      label: t('accounts.name'),
      opens: true,
      cell: ({ document_id, name }) => (
        <TextLink to="/accounts/$id" params={{ id: document_id }} size="sm" fw={600}>
          {name}
        </TextLink>
      ),
    },
    ...useFigureColumns(rows.shown),
    { id: 'id', label: t('accounts.id'), cell: ({ document_id }) => <CopyText text={document_id} isShort /> },
    { id: 'created', label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
    { id: 'updated', label: t('webhooks.updated'), cell: ({ updated_at }) => <Time at={updated_at} /> },
  ]
  return (
    <Page
      title={t('accounts.title')}
      lead={t('accounts.lead')}
      actions={
        <>
          {mayEverywhere('account:create') && <CreateAccount />}
          <ApiCall operation="identity.accountFindAll" method="GET" path="/api/v3/identity/account" query={query} />
        </>
      }
    >
      <Search key={q} text={q} onChoose={choose} />
      <List
        name="accounts"
        caption={t('accounts.title')}
        columns={columns}
        rows={rows}
        isFiltered={q !== ''}
        filters={[[t('accounts.name-part'), q]]}
        onClear={() => choose('')}
        empty={<Text size="sm">{t('accounts.empty')}</Text>}
      />
    </Page>
  )
}

function Search({ text, onChoose }: { text: string; onChoose: (text: string) => void }) {
  const { t } = useTranslation()
  const [typed, setTyped] = useState(text)
  return (
    <FilterForm onApply={() => onChoose(typed.trim())}>
      <TextInput
        label={t('accounts.name-part')}
        minLength={3}
        value={typed}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      />
    </FilterForm>
  )
}

function CreateAccount() {
  const { t } = useTranslation()
  const navigate = useNavigate()
  return (
    <CreateButton label={t('accounts.new')}>
      {() => <CreateAccountForm onDone={(id) => void navigate({ to: '/accounts/$id', params: { id } })} />}
    </CreateButton>
  )
}
