import { escapeFilter } from '../../parts/filter-text.ts'

/** The filters of the audit log, as the URL holds them. */
export const AUDIT_FILTERS = [
  'action',
  'outcome',
  'user',
  'target',
  'account',
  'address',
  'request_id',
  'since',
  'from',
  'to',
] as const

export type AuditFilters = Partial<Record<(typeof AUDIT_FILTERS)[number], string>>

/** Ranges of time that are offered, ms. */
const RANGES_MS: Readonly<Record<string, number>> = {
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 7 * 86_400_000,
  '30d': 30 * 86_400_000,
}

const EQUAL = ['outcome', 'user', 'target', 'account', 'address', 'request_id'] as const

/** An instant of a field of a form, in the time zone of the browser; undefined for what is none. */
function readInstant(text: string | undefined): string | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}

/** The filters of the API. Pure. */
export function toAuditFilters(filters: AuditFilters, nowMs: number): string[] {
  const range = filters.since === undefined ? undefined : RANGES_MS[filters.since]
  const [from, to] = [readInstant(filters.from), readInstant(filters.to)]
  return [
    ...(filters.action ? [`action|eq|${escapeFilter(filters.action)}`] : []),
    ...EQUAL.flatMap((name) => (filters[name] ? [`${name}|eq|${escapeFilter(filters[name])}`] : [])),
    ...(range === undefined ? [] : [`created_at|gte|${new Date(nowMs - range).toISOString()}`]),
    ...(filters.since === 'custom' && from ? [`created_at|gte|${from}`] : []),
    ...(filters.since === 'custom' && to ? [`created_at|lt|${to}`] : []),
  ]
}

/** One line of a CSV file (RFC 4180); a text that a spreadsheet would run begins with an apostrophe. Pure. */
export function toCsvLine(values: readonly unknown[]): string {
  return values
    .map((value) => {
      const text =
        value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value)
      const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
    })
    .join(',')
}
