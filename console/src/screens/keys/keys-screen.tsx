import { TextInput } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { escapeFilter } from '../../parts/filter-text.ts'
import { FilterForm } from '../../parts/form.tsx'
import { Page } from '../../parts/page.tsx'
import { CreateKey } from './create-key.tsx'
import { KeyList } from './key-list.tsx'

/** API keys; without the permission for those of others, the own ones. */
export function KeysScreen() {
  const { t } = useTranslation()
  const { mayEverywhere } = useAccess()
  const { q = '' } = useSearch({ from: '/keys' })
  const navigate = useNavigate()
  const [text, setText] = useState(q)
  const filters = q === '' ? [] : [`name|like|${escapeFilter(q)}`]
  const choose = (given: string) =>
    void navigate({ to: '/keys', search: given === '' ? {} : { q: given }, replace: true })
  return (
    <Page
      title={t('keys.title')}
      lead={mayEverywhere('api-key:find-all') ? t('keys.lead') : t('keys.lead-own')}
      actions={
        <>
          <CreateKey />
          <ApiCall
            operation="identity.apiKeyFindAll"
            method="GET"
            path="/api/v3/identity/api-key"
            {...(filters.length > 0 && { query: { filters } })}
          />
        </>
      }
    >
      <FilterForm onApply={() => choose(text.trim())}>
        <TextInput
          label={t('keys.name-part')}
          minLength={3}
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
      </FilterForm>
      <KeyList
        filters={filters}
        named={[[t('keys.name-part'), q]]}
        onClear={() => {
          setText('')
          choose('')
        }}
      />
    </Page>
  )
}
