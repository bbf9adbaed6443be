import { Select } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useEventTypes } from '../../catalogue/event-types.ts'

/** Chooses an event type by its name; they are read when the field is entered. */
export function EventSelect({ value, onChange }: { value: string; onChange: (event: string) => void }) {
  const { t } = useTranslation()
  const [isEntered, setIsEntered] = useState(value !== '')
  const types = useEventTypes(isEntered)
  return (
    <Select
      label={t('webhooks.event')}
      data={types.data?.map(({ internal }) => internal) ?? (value === '' ? [] : [value])}
      value={value === '' ? null : value}
      onChange={(event) => onChange(event ?? '')}
      onFocus={() => setIsEntered(true)}
      searchable
      clearable
      limit={50}
      placeholder={t('filters.all')}
      nothingFoundMessage={types.isFetching ? t('list.loading') : t('webhooks.no-event')}
    />
  )
}
