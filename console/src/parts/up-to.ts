import { numberFormat } from './words/formats.ts'

/** How far the API counts what an account or an app has. */
const COUNT_LIMIT = 1_000

/** A count in words; a dash for none. One at the limit of the API says that there may be more. `translate` is that of `useTranslation`. */
export function formatUpTo(
  count: number | null | undefined,
  language: string,
  translate: (key: 'list.or-more', values: { limit: string }) => string,
): string {
  if (count === null || count === undefined) return '–'
  const number = numberFormat(language)
  return count < COUNT_LIMIT ? number.format(count) : translate('list.or-more', { limit: number.format(COUNT_LIMIT) })
}
