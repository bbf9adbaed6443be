import { useTranslation } from 'react-i18next'
import { settings } from '../../frame/settings.ts'
import { TextInput } from '../../parts/fields.tsx'

interface UrlInputProps {
  value: string
  onChange: (url: string) => void
  /** Hint about valid values. Default: that for a reader who sets nothing of the service. */
  hint?: string
}

/** The URL to which a webhook posts. */
export function UrlInput({ value, onChange, hint }: UrlInputProps) {
  const { t } = useTranslation('console')
  return (
    <TextInput
      field="url"
      label={t('create.url')}
      description={hint ?? t(settings.allowsPrivateTargets ? 'create.url-hint-allowed' : 'create.url-hint')}
      placeholder="https://example.com/webhooks"
      type="url"
      required
      maxLength={2048}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  )
}
