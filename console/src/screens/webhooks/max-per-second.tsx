import { useTranslation } from 'react-i18next'
import { TextInput } from '../../parts/fields.tsx'
import { isMaxPerSecond, MAX_PER_SECOND } from './max-per-second.ts'

interface MaxPerSecondInputProps {
  /** Empty for no limit. */
  value: string
  onChange: (value: string) => void
  isReadOnly?: boolean
}

/** Field for the attempts that start in a second at most. */
export function MaxPerSecondInput({ value, onChange, isReadOnly = false }: MaxPerSecondInputProps) {
  const { t } = useTranslation('console')
  return (
    <TextInput
      field="max_per_second"
      label={t('webhooks.max-per-second')}
      description={t('webhooks.max-per-second-hint')}
      error={!isMaxPerSecond(value) && t('webhooks.max-per-second-wrong', { limit: MAX_PER_SECOND })}
      inputMode="numeric"
      maxLength={4}
      readOnly={isReadOnly}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  )
}
