/** The filters of the ledger, as they stand in the URL. */
export interface DeliveryFilters {
  status?: string
  webhook?: string
  event?: string
  account?: string
  code?: string
  since?: string
}

const NAMES = ['status', 'webhook', 'event', 'account', 'code', 'since'] as const

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

/** A text within a filter of the API: commas and backslashes are escaped. */
const escapeText = (text: string) => text.replaceAll(/[\\,]/g, '\\$&')

/** The filters as the API takes them. `nowMs` is where a time counts back from. Pure. */
export function toApiFilters(filters: DeliveryFilters, nowMs: number): string[] {
  const { status, webhook, event, account, code, since } = filters
  const hours = since === undefined ? undefined : SINCE_HOURS[since]
  return [
    status === 'test' ? 'is_test|eq|true' : status && `status|eq|${escapeText(status)}`,
    webhook && `webhook|eq|${escapeText(webhook)}`,
    event && `event|eq|${escapeText(event)}`,
    account && `account|eq|${escapeText(account)}`,
    code === 'none' ? 'last_status_code|null|true' : code && readCodes(code),
    hours !== undefined && `created_at|gte|${new Date(nowMs - hours * 3_600_000).toISOString()}`,
  ].filter((one) => typeof one === 'string' && one !== '') as string[]
}

/** `500`, or a class of them: `5xx`. */
function readCodes(code: string): string | undefined {
  const [, first] = /^([1-5])xx$/.exec(code) ?? []
  if (first !== undefined) return `last_status_code|between|${first}00,${first}99`
  return /^\d{3}$/.test(code) ? `last_status_code|eq|${code}` : undefined
}
