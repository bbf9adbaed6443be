import { WebhookVerificationError } from './verification-error.ts'

/**
 * Request headers in any form a framework has them: a `Headers` object (or anything with `get`), or a plain object
 * like Node's `request.headers`, whose names may be in any case and whose values may be arrays.
 */
export type HeadersInput =
  | { get(name: string): string | null | undefined }
  | { readonly [name: string]: string | readonly string[] | undefined }

/**
 * Finds the value of a header; `undefined` when it is missing. Refuses a repeated header (`header_malformed`), because
 * parsers differ in which value they choose.
 * @param name in lower case
 */
export function findHeaderValue(headers: HeadersInput, name: string): string | undefined {
  if (hasGet(headers)) return headers.get(name) ?? undefined
  const values: string[] = []
  for (const [key, value] of Object.entries(headers)) {
    if (value === undefined || value === null || key.toLowerCase() !== name) continue
    values.push(...(Array.isArray(value) ? (value as string[]) : [value as string]))
  }
  if (values.length > 1) throw new WebhookVerificationError('header_malformed', `The header ${name} was sent twice.`)
  const [value] = values
  if (value !== undefined && typeof value !== 'string') {
    throw new WebhookVerificationError('header_malformed', `The value of the header ${name} is not text.`)
  }
  return value
}

function hasGet(headers: HeadersInput): headers is { get(name: string): string | null | undefined } {
  if (headers === null || typeof headers !== 'object') {
    throw new WebhookVerificationError('header_missing', 'No headers were passed.')
  }
  return typeof headers.get === 'function'
}
