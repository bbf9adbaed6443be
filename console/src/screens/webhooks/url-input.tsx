import { useTranslation } from 'react-i18next'
import { TextInput } from '../../parts/fields.tsx'

interface UrlInputProps {
  value: string
  onChange: (url: string) => void
  /** What it may be. Default: a public one. */
  hint?: string
}

/** The URL to which a webhook posts. */
export function UrlInput({ value, onChange, hint }: UrlInputProps) {
  const { t } = useTranslation('console')
  return (
    <TextInput
      field="url"
      label={t('create.url')}
      description={hint ?? t('create.url-hint')}
      placeholder="https://example.com/webhooks"
      type="url"
      required
      maxLength={2048}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  )
}
