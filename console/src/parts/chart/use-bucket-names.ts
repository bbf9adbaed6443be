import { useTranslation } from 'react-i18next'
import { useTimeZone } from '../../frame/preferences.ts'
import { formatBucket, type Range } from './format.ts'

/** The name of a bucket on the axis, in the language and zone of the browser. */
export function useBucketNames(range: Range): (at: string) => string {
  const { i18n } = useTranslation()
  const timeZone = useTimeZone()
  return (at) => formatBucket(at, range, { language: i18n.language, timeZone })
}
