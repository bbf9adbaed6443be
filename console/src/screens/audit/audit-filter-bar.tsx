import { NativeSelect, TextInput } from '@mantine/core'
import type { TFunction } from 'i18next'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { FilterChoice, FilterForm } from '../../parts/form.tsx'
import type { NamedFilter } from '../../parts/no-match.tsx'
import { valueName } from '../../parts/words/value-name.ts'
import type { AuditFilters } from './audit-filters.ts'

const TEXTS = ['action', 'user', 'target', 'account', 'address', 'request_id'] as const
const SINCE = ['1h', '24h', '7d', '30d'] as const
const PLACEHOLDERS: Partial<Record<(typeof TEXTS)[number], string>> = {
  action: 'webhook.update',
  address: '203.0.113.7',
}

/** The filters of the audit log by the words of the form. Pure. */
export function nameAuditFilters(filters: AuditFilters, t: TFunction): readonly NamedFilter[] {
  const { outcome, since } = filters
  const isCustom = since === 'custom'
  return [
    ...TEXTS.map((name) => [t(`audit.${name}`), filters[name]] as const),
    [t('audit.outcome'), outcome && valueName('status', outcome, t)],
    [t('filters.since'), since && (isCustom ? t('audit.custom') : valueName('since', since, t))],
    [t('audit.from'), isCustom ? filters.from : undefined],
    [t('audit.to'), isCustom ? filters.to : undefined],
  ]
}

/** The filters of the audit log as a form; they are set together. */
export function AuditFilterBar({
  filters,
  onChoose,
}: {
  filters: AuditFilters
  onChoose: (next: AuditFilters) => void
}) {
  const { t } = useTranslation()
  const [texts, setTexts] = useState(filters)
  const apply = () => {
    const given = Object.entries(texts).flatMap(([name, text]) => (text.trim() ? [[name, text.trim()]] : []))
    onChoose(Object.fromEntries(given))
  }
  const change = (part: AuditFilters) => setTexts({ ...texts, ...part })
  return (
    <FilterForm onApply={apply}>
      {TEXTS.map((name) => (
        <TextInput
          key={name}
          label={t(`audit.${name}`)}
          placeholder={PLACEHOLDERS[name] ?? 'id'}
          w={170}
          value={texts[name] ?? ''}
          onChange={({ currentTarget: { value } }) => change({ [name]: value })}
        />
      ))}
      <FilterChoice
        label={t('audit.outcome')}
        value={texts.outcome}
        onChange={(value) => change({ outcome: value })}
        options={[
          { value: 'success', label: t('status.success') },
          { value: 'failure', label: t('status.failure') },
        ]}
      />
      <NativeSelect
        label={t('filters.since')}
        value={texts.since ?? ''}
        onChange={({ currentTarget: { value } }) => change({ since: value })}
        data={[
          { value: '', label: t('filters.any-time') },
          ...SINCE.map((item) => ({ value: item, label: t(`since.${item}`) })),
          { value: 'custom', label: t('audit.custom') },
        ]}
      />
      {texts.since === 'custom' &&
        (['from', 'to'] as const).map((name) => (
          <TextInput
            key={name}
            type="datetime-local"
            label={t(`audit.${name}`)}
            value={texts[name] ?? ''}
            onChange={({ currentTarget: { value } }) => change({ [name]: value })}
          />
        ))}
    </FilterForm>
  )
}
