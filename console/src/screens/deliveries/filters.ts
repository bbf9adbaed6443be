import { escapeFilter } from '../../parts/filter-text.ts'

/** The filters of the ledger, as they stand in the URL. */
export interface DeliveryFilters {
  status?: string
  id?: string
  webhook?: string
  event?: string
  account?: string
  resource?: string
  event_id?: string
  code?: string
  error?: string
  attempts?: string
  trigger?: string
  waiting?: string
  since?: string
  from?: string
  to?: string
  sort?: string
}

const NAMES = [
  'status',
  'id',
  'webhook',
  'event',
  'account',
  'resource',
  'event_id',
  'code',
  'error',
  'attempts',
  'trigger',
  'waiting',
  'since',
  'from',
  'to',
  'sort',
] as const satisfies readonly (keyof DeliveryFilters)[]

/** Reads the filters out of a query; anything else in it is dropped. */
export function readDeliveryFilters(search: Record<string, unknown>): DeliveryFilters {
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = search[name]
      return (typeof value === 'string' || typeof value === 'number') && value !== '' ? [[name, String(value)]] : []
    }),
  )
}

/** How far back a filter of time looks, hours. */
export const SINCE_HOURS: Readonly<Record<string, number>> = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 }

/** The filters as the API takes them. `nowMs` is where a time counts back from. Pure. */
export function toApiFilters(filters: DeliveryFilters, nowMs: number): string[] {
  const { status, code, error, attempts, trigger, waiting, since, from, to } = filters
  const hours = since === undefined ? undefined : SINCE_HOURS[since]
  const texts = [
    ['document_id', filters.id],
    ['webhook', filters.webhook],
    ['event', filters.event],
    ['account', filters.account],
    ['resource_id', filters.resource],
    ['event_id', filters.event_id],
    ['last_error', error],
  ] as const
  return [
    status === 'test' ? 'is_test|eq|true' : status && `status|eq|${escapeFilter(status)}`,
    ...texts.map(([field, value]) => value && `${field}|eq|${escapeFilter(value)}`),
    code === 'none' ? 'last_status_code|null|true' : code && readCodes(code),
    attempts && readAttempts(attempts),
    (trigger === 'manual' || trigger === 'automatic') && `is_replay|eq|${trigger === 'manual'}`,
    waiting === 'throttled' && 'waiting_reason|eq|throttled',
    hours !== undefined && `created_at|gte|${new Date(nowMs - hours * 3_600_000).toISOString()}`,
    readInstant('gte', from),
    readInstant('lte', to),
  ].filter((item) => typeof item === 'string' && item !== '') as string[]
}

/** `500`, or a class of them: `5xx`. */
function readCodes(code: string): string | undefined {
  const [, first] = /^([1-5])xx$/.exec(code) ?? []
  if (first !== undefined) return `last_status_code|between|${first}00,${first}99`
  return /^\d{3}$/.test(code) ? `last_status_code|eq|${code}` : undefined
}

/** `3`, `2-5` or `6-`. */
function readAttempts(text: string): string | undefined {
  const [, low, dash, high] = /^(\d{1,4})(-)?(\d{1,4})?$/.exec(text) ?? []
  if (low === undefined) return undefined
  if (dash === undefined) return `attempts|eq|${low}`
  return high === undefined ? `attempts|gte|${low}` : `attempts|between|${low},${high}`
}

/** An instant of a filter for a field of time, which has no zone: `2026-09-11T08:00` in UTC or in the zone of the browser. Pure. */
export function toFieldTime(instant: string | undefined, timeZone: 'UTC' | undefined): string {
  const atMs = instant === undefined ? Number.NaN : Date.parse(instant)
  if (Number.isNaN(atMs)) return ''
  const shiftMs = timeZone === 'UTC' ? 0 : new Date(atMs).getTimezoneOffset() * 60_000
  return new Date(atMs - shiftMs).toISOString().slice(0, 16)
}

/** The instant of a field of time: a link with it means the same in every zone. Pure. */
export function fromFieldTime(text: string, timeZone: 'UTC' | undefined): string {
  const atMs = Date.parse(timeZone === 'UTC' ? `${text}Z` : text)
  return Number.isNaN(atMs) ? '' : new Date(atMs).toISOString()
}

/** An instant, of the URL. */
function readInstant(operator: 'gte' | 'lte', text: string | undefined): string | undefined {
  const at = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(at) ? undefined : `created_at|${operator}|${new Date(at).toISOString()}`
}
