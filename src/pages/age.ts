const UNITS = [
  { seconds: 86_400, one: 'day' },
  { seconds: 3_600, one: 'hour' },
  { seconds: 60, one: 'minute' },
] as const

/** Beyond this age a date says more than a number of days. */
const DATE_AFTER_SECONDS = 14 * 86_400

let dateFormat: Intl.DateTimeFormat | undefined

/** `3 May 2026`. The format is built at its first use: it loads the data of the language. */
function formatDate(at: Date): string {
  dateFormat ??= new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' })
  return dateFormat.format(at)
}

/** How long ago an instant was, in words: `just now`, `2 hours ago`, `on 3 May 2026`. */
export function describeAge(at: Date, now: Date): string {
  const seconds = Math.max(0, Math.floor((now.getTime() - at.getTime()) / 1000))
  if (seconds >= DATE_AFTER_SECONDS) return `on ${formatDate(at)}`
  const unit = UNITS.find((one) => seconds >= one.seconds)
  if (unit === undefined) return 'just now'
  const count = Math.floor(seconds / unit.seconds)
  return `${count} ${unit.one}${count === 1 ? '' : 's'} ago`
}
