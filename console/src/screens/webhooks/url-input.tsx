import { useTranslation } from 'react-i18next'
import { TextInput } from '../../parts/fields.tsx'

/** The URL to which a webhook posts. */
export function UrlInput({ value, onChange }: { value: string; onChange: (url: string) => void }) {
  const { t } = useTranslation('console')
  return (
    <TextInput
      field="url"
      label={t('create.url')}
      description={t('create.url-hint')}
      placeholder="https://example.com/webhooks"
      type="url"
      required
      maxLength={2048}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  )
}
