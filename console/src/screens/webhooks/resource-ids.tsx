import { useTranslation } from 'react-i18next'
import { Textarea } from '../../parts/fields.tsx'
import { listLines } from './resource-ids.ts'

/** Resources that a webhook is limited to, at most (docs/contract/webhooks.md#resources). */
const RESOURCES_LIMIT = 100

interface ResourceIdsInputProps {
  /** One id a line. */
  value: string
  onChange: (value: string) => void
  isReadOnly?: boolean
}

/** Field for the resources that a webhook is limited to. */
export function ResourceIdsInput({ value, onChange, isReadOnly = false }: ResourceIdsInputProps) {
  const { t } = useTranslation('console')
  const isOver = listLines(value).length > RESOURCES_LIMIT
  return (
    <Textarea
      field="resource_ids"
      label={t('webhooks.resources')}
      description={t('webhooks.resources-hint')}
      error={isOver && t('webhooks.resources-over', { limit: RESOURCES_LIMIT })}
      autosize
      minRows={2}
      maxRows={8}
      readOnly={isReadOnly}
      spellCheck={false}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  )
}
