/** Members that hold a signature, a secret or a user. */
const SECRET_MEMBERS = ['auth', 'shared_secret', 'channel_data', 'user_data', 'user_info', 'presence', 'token']

/** A signature that stands alone, as in texts of errors. */
const SIGNATURE = /\b[0-9a-f]{64}\b/g

/** Takes signatures, secrets and payloads out of a line of the client library's log: some words, and then often JSON. */
export function redact(line: string): string {
  const start = line.search(/[[{]/)
  const words = start === -1 ? line : line.slice(0, start)
  return (words + (start === -1 ? '' : redactJson(line.slice(start)))).replace(SIGNATURE, '[redacted]')
}

function redactJson(text: string): string {
  try {
    return JSON.stringify(redactValue(JSON.parse(text)))
  } catch {
    // Unreadable storage is treated as unset.
    return `[${text.length} characters]`
  }
}

function redactValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redactValue)
  if (typeof value !== 'object' || value === null) return value
  const { event } = value as { event?: unknown }
  const isMessage = typeof event === 'string' && !event.startsWith('pusher')
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      if (SECRET_MEMBERS.includes(name)) return [name, '[redacted]']
      if (isMessage && name === 'data') return [name, `[${JSON.stringify(member)?.length ?? 0} characters]`]
      return [name, redactValue(member)]
    }),
  )
}

/** Where a page says that it wants to be debugged. */
interface DebugPlaces {
  localStorage?: { getItem(name: string): string | null }
  location?: { search: string }
}

/**
 * Whether the page wants debug output: the local storage holds `realtime_debug` = `1`, or the URL has `?realtime_debug=1` or
 * `?pusher_debug=1`. A storage that may not be read counts as empty.
 */
export function isDebugWanted(places: DebugPlaces = globalThis as DebugPlaces): boolean {
  const query = new URLSearchParams(places.location?.search ?? '')
  if (query.get('realtime_debug') === '1' || query.get('pusher_debug') === '1') return true
  try {
    return places.localStorage?.getItem('realtime_debug') === '1'
  } catch {
    return false
  }
}
