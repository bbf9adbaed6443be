import { Button, NativeSelect, SegmentedControl, SimpleGrid, Stack, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { type ChangeEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useTimeZone } from '../../frame/preferences.ts'
import { FilterChoice, FilterFields, Form } from '../../parts/form.tsx'
import { faultName } from '../../parts/words/fault-name.ts'
import { type DeliveryFilters, fromFieldTime, SINCE_HOURS, toFieldTime } from './filters.ts'

const STATUSES = ['pending', 'retrying', 'success', 'failed', 'exhausted', 'cancelled'] as const

const FAULTS = [
  'http_4xx',
  'http_5xx',
  'http_unexpected',
  'redirect',
  'timeout',
  'connect',
  'reset',
  'dns',
  'tls',
  'protocol',
  'blocked_address',
  'interrupted',
  'secret_missing',
  'secret_unreadable',
  'lease_expired',
  'returned',
] as const

/** The filters that are typed. */
const TYPED = ['id', 'webhook', 'event', 'account', 'resource', 'event_id', 'attempts', 'from', 'to'] as const

type Typed = (typeof TYPED)[number]

interface FilterBarProps {
  filters: DeliveryFilters
  onChoose: (next: DeliveryFilters) => void
}

type OnChange = (name: keyof DeliveryFilters, value: string) => void

/** The properties of a field that is typed. */
type FieldOf = (name: Typed) => {
  value: string
  onChange: (event: ChangeEvent<HTMLInputElement>) => void
  autoComplete: string
}

/** The filters of the ledger: what is chosen holds at once, what is typed by the button. */
export function FilterBar({ filters, onChoose }: FilterBarProps) {
  const { t } = useTranslation()
  const [typed, setTyped] = useState<Partial<Record<Typed, string>>>(filters)
  const timeZone = useTimeZone()
  const hasMore =
    TYPED.some((name) => name !== 'event' && filters[name] !== undefined) ||
    filters.error !== undefined ||
    filters.trigger !== undefined ||
    filters.waiting !== undefined
  const [isOpen, { toggle }] = useDisclosure(hasMore)
  const change: OnChange = (name, value) => {
    const { [name]: _, ...rest } = filters
    onChoose(value === '' ? rest : { ...rest, [name]: value })
  }
  const submit = () => {
    const kept = Object.entries(filters).filter(([name]) => !TYPED.includes(name as Typed))
    const given = TYPED.flatMap((name) => {
      const value = typed[name]?.trim()
      return value ? [[name, value]] : []
    })
    onChoose(Object.fromEntries([...kept, ...given]))
  }
  const fieldOf: FieldOf = (name) => ({
    value: typed[name] ?? '',
    onChange: ({ currentTarget: { value } }) => setTyped((before) => ({ ...before, [name]: value })),
    autoComplete: 'off',
  })
  const timeFieldOf: FieldOf = (name) => ({
    ...fieldOf(name),
    value: toFieldTime(typed[name], timeZone),
    onChange: ({ currentTarget: { value } }) =>
      setTyped((before) => ({ ...before, [name]: fromFieldTime(value, timeZone) })),
  })
  return (
    <Form label={t('filters.title')} onSubmit={submit}>
      <Stack gap="sm">
        <StatusChoice value={filters.status ?? ''} onChange={(value) => change('status', value)} />
        <FilterFields>
          <TextInput label={t('deliveries.event')} placeholder="contract.update" {...fieldOf('event')} />
          <Choices filters={filters} onChange={change} />
          <Button variant="default" onClick={toggle} aria-expanded={isOpen}>
            {t('ledger.more-filters')}
          </Button>
          <Button type="submit" variant="default">
            {t('filters.apply')}
          </Button>
          {Object.keys(filters).length > 0 && (
            <Button variant="subtle" onClick={() => onChoose({})}>
              {t('list.clear')}
            </Button>
          )}
        </FilterFields>
        {isOpen && <MoreFields filters={filters} fieldOf={fieldOf} timeFieldOf={timeFieldOf} onChange={change} />}
      </Stack>
    </Form>
  )
}

function Choices({ filters, onChange }: { filters: DeliveryFilters; onChange: OnChange }) {
  const { t } = useTranslation()
  return (
    <>
      <FilterChoice
        label={t('deliveries.answer')}
        value={filters.code}
        onChange={(value) => onChange('code', value)}
        options={[
          ...['2xx', '3xx', '4xx', '5xx'].map((value) => ({ value, label: value })),
          { value: 'none', label: t('deliveries.no-answer') },
        ]}
      />
      <NativeSelect
        label={t('filters.since')}
        value={filters.since ?? ''}
        onChange={({ currentTarget }) => onChange('since', currentTarget.value)}
        data={[
          { value: '', label: t('filters.any-time') },
          ...Object.keys(SINCE_HOURS).map((value) => ({
            value,
            label: t(`since.${value as '1h' | '24h' | '7d' | '30d'}`),
          })),
        ]}
      />
      <NativeSelect
        label={t('ledger.sort')}
        value={filters.sort ?? ''}
        onChange={({ currentTarget }) => onChange('sort', currentTarget.value)}
        data={[
          { value: '', label: t('ledger.newest') },
          { value: 'oldest', label: t('ledger.oldest') },
        ]}
      />
    </>
  )
}

interface MoreFieldsProps {
  filters: DeliveryFilters
  fieldOf: FieldOf
  timeFieldOf: FieldOf
  onChange: OnChange
}

function MoreFields({ filters, fieldOf, timeFieldOf, onChange }: MoreFieldsProps) {
  const { t } = useTranslation()
  const zone = useTimeZone() ?? t('zone.local')
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
      <TextInput label={t('ledger.id')} placeholder="id" {...fieldOf('id')} />
      <TextInput label={t('deliveries.webhook')} placeholder="id" {...fieldOf('webhook')} />
      <TextInput label={t('delivery.account')} placeholder="id" {...fieldOf('account')} />
      <TextInput label={t('event.resource')} placeholder="id" {...fieldOf('resource')} />
      <TextInput label={t('event.id')} placeholder="id" {...fieldOf('event_id')} />
      <TextInput label={t('ledger.attempts')} placeholder="2-5" {...fieldOf('attempts')} />
      <FilterChoice
        label={t('ledger.error')}
        value={filters.error}
        onChange={(value) => onChange('error', value)}
        options={FAULTS.map((value) => ({ value, label: faultName(value, t) }))}
      />
      <FilterChoice
        label={t('ledger.trigger')}
        value={filters.trigger}
        onChange={(value) => onChange('trigger', value)}
        options={[
          { value: 'automatic', label: t('ledger.trigger.false') },
          { value: 'manual', label: t('ledger.trigger.true') },
        ]}
      />
      <FilterChoice
        label={t('ledger.waiting')}
        value={filters.waiting}
        onChange={(value) => onChange('waiting', value)}
        options={[{ value: 'throttled', label: t('deliveries.throttled') }]}
      />
      <TextInput type="datetime-local" label={t('ledger.from', { zone })} {...timeFieldOf('from')} />
      <TextInput type="datetime-local" label={t('ledger.to', { zone })} {...timeFieldOf('to')} />
    </SimpleGrid>
  )
}

function StatusChoice({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const { t } = useTranslation()
  const data = [
    { value: '', label: t('filters.all') },
    ...STATUSES.map((status) => ({ value: status, label: t(`status.${status}`) })),
    { value: 'test', label: t('deliveries.tests') },
  ]
  return (
    <>
      <SegmentedControl
        visibleFrom="md"
        style={{ alignSelf: 'flex-start' }}
        size="xs"
        transitionDuration={0}
        aria-label={t('deliveries.status')}
        value={value}
        onChange={onChange}
        data={data}
      />
      <NativeSelect
        hiddenFrom="md"
        label={t('deliveries.status')}
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
        data={data}
      />
    </>
  )
}
