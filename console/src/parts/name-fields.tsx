import { useTranslation } from 'react-i18next'
import { Textarea, TextInput } from './fields.tsx'

interface Named {
  name: string
  description: string
}

interface NameFieldsProps {
  draft: Named
  onChange: (members: Partial<Named>) => void
}

/** Fields of the name and description that a new row may have. */
export function NameFields({ draft, onChange }: NameFieldsProps) {
  const { t } = useTranslation()
  return (
    <>
      <TextInput
        field="name"
        label={t('webhooks.name')}
        maxLength={100}
        value={draft.name}
        onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
      />
      <Textarea
        field="description"
        label={t('create.description')}
        maxLength={500}
        autosize
        value={draft.description}
        onChange={({ currentTarget }) => onChange({ description: currentTarget.value })}
      />
    </>
  )
}
