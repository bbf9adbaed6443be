import type { FieldError, FieldErrorCode, FieldParams } from '../../http/problem/field-error.ts'

/** Longest URL of a published event, in characters (docs/contract/events.md#urls-of-published-events). */
export const MAX_RESOURCE_URL_LENGTH = 2048

/** `https://`, in any case, and no character that the URL parser drops or rewrites before it reads the rest. */
const PLAIN_HTTPS = /^https:\/\/[^\s\\\p{Cc}]+$/iu

/**
 * The broken rule of a resource URL of another service. Any host is allowed, also a private one: this service never
 * requests it, and a receiver may be in the same network. It is delivered unchanged.
 */
export function findResourceUrlError(url: string | null): FieldError | undefined {
  if (url === null) return undefined
  const broken = (code: FieldErrorCode, message: string, params?: FieldParams): FieldError => ({
    ...{ path: 'url', code, message },
    ...(params && { params }),
  })
  if (url.length > MAX_RESOURCE_URL_LENGTH)
    return broken('url_too_long', `has over ${MAX_RESOURCE_URL_LENGTH} characters`, { limit: MAX_RESOURCE_URL_LENGTH })
  const parsed = URL.parse(url)
  if (!parsed) return broken('url_invalid', 'is not an absolute URL; give an https:// URL, or leave it out')
  if (parsed.protocol !== 'https:') return broken('url_not_https', 'must begin with https://')
  // Every subscriber receives the URL.
  if (parsed.username !== '' || parsed.password !== '') return broken('url_has_user_info', 'must not hold credentials')
  if (!PLAIN_HTTPS.test(url))
    return broken('url_invalid', 'must begin with https:// and hold no white space, control character or backslash')
  return undefined
}
