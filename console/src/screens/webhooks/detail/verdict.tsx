import { Alert, Text, Textarea } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Icon } from '../../../frame/icons.tsx'

/** The raw body whose signature is examined. */
export function BodyInput({ value, onChange }: { value: string; onChange: (body: string) => void }) {
  const { t } = useTranslation('console')
  return (
    <Textarea
      label={t('signature.body')}
      description={t('signature.body-hint')}
      required
      autosize
      minRows={4}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  )
}

/** The result of an examination. */
export function Verdict({ isValid, title, text }: { isValid: boolean; title: string; text: string }) {
  return (
    <Alert
      role="status"
      color={isValid ? 'teal' : 'red'}
      variant="outline"
      icon={<Icon name={isValid ? 'good' : 'bad'} />}
      title={title}
    >
      <Text size="sm">{text}</Text>
    </Alert>
  )
}
