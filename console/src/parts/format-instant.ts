import { dateFormat } from './words/formats.ts'
/** An instant to the second, in UTC with its name. Pure. */
export function formatInstant(at: string, language: string, timeZone: 'UTC' | undefined): string {
  const style = { dateStyle: 'medium', timeStyle: 'medium', ...(timeZone && { timeZone }) } as const
  const text = dateFormat(language, style).format(new Date(at))
  return timeZone ? `${text} ${timeZone}` : text
}
