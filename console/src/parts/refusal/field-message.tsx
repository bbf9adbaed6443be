import { type FieldError, findFieldText, toSentence } from './field-text.ts'
import { useRefusalTexts } from './refusal-texts.ts'

/** Remedy of a broken rule in the language of the page, else in the words of the API, which are English. */
export function FieldMessage({ error }: { error: FieldError }) {
  const { language, told } = useRefusalTexts()
  const text = told && findFieldText(error, told)
  if (text !== undefined) return text
  const message = toSentence(error.message)
  return language === 'en' ? message : <span lang="en">{message}</span>
}
