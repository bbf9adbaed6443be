import type { Keyring } from '../../base/keyring.ts'
import { buildSealedCache, type SealedCache } from '../../delivery/post/secret-cache.ts'
import { buildFieldProblem, invalidField } from '../../http/problem/problem.ts'
import type { WebhookChange, WebhookRecord } from './webhook.store.ts'

/** Headers that a subscriber adds to its deliveries: names in lower case, and their values. */
export type OwnHeaders = Readonly<Record<string, string>>

/** Token of RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/

/** Names that a subscriber cannot set, by the reason (docs/contract/webhooks.md#headers-of-the-subscriber). */
const RESERVED = [
  // Framing, connection and negotiation of HTTP (RFC 9110, sections 7 and 8; RFC 9112).
  /^(?:host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|via|max-forwards|http2-settings)$/,
  /^(?:content-.*|proxy-.*|accept-encoding|date)$/,
  // Conditions, which change what an answer means (RFC 9110, sections 13 and 14).
  /^(?:if-.*|range)$/,
  // Headers of the service about a delivery, and those that public verifiers read in their place.
  /^(?:user-agent|webhook-.*|svix-.*|x-service-.*|traceparent|tracestate|baggage)$/,
  // Headers in which a receiver trusts its proxies for the address, the host, the path and the method.
  /^(?:forwarded|x-forwarded-.*|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|cf-.*|fastly-client-ip)$/,
  /^(?:x-host|x-original-.*|x-rewrite-url|x-http-method.*|x-method-override)$/,
  // Headers that only a browser sets.
  /^(?:cookie2?|set-cookie2?|origin|referer|sec-.*|access-control-.*)$/,
]

/** Checks the headers of a body, whose values its schema has checked. Throws a 422 on the header at fault, without its value. */
export function readHeaders(given: OwnHeaders): OwnHeaders {
  const headers = new Map<string, string>()
  const dashedNames = new Set<string>()
  for (const [name, value] of Object.entries(given)) {
    const path = `headers.${name.slice(0, 100)}`
    const known = name.toLowerCase()
    // A receiver behind CGI, WSGI or Rack reads both as one name (RFC 3875, section 4.1.18).
    const dashed = known.replaceAll('_', '-')
    if (!TOKEN.test(name))
      throw buildFieldProblem({
        path,
        code: 'pattern',
        message: 'must be a token of RFC 9110 of at most 100 characters',
        params: { pattern: TOKEN.source },
      })
    if (RESERVED.some((reserved) => reserved.test(dashed)))
      throw invalidField(path, 'reserved', 'has a meaning to HTTP, to a proxy or to the service, and cannot be set')
    if (dashedNames.has(dashed))
      throw invalidField(path, 'duplicate', 'is there twice; the case of a name does not count, nor do _ and - differ')
    dashedNames.add(dashed)
    headers.set(known, value)
  }
  return Object.fromEntries([...headers].sort(([name], [other]) => (name < other ? -1 : 1)))
}

/** The context under which the headers of a webhook are sealed: another one than that of its secret. */
export const headersContextOf = (webhook: string) => `webhook-headers:${webhook}`

/** The columns of a webhook for its headers; `headers` as `readHeaders` returns them. */
export function sealHeaders(
  keyring: Pick<Keyring, 'seal'>,
  webhook: string,
  headers: OwnHeaders,
): { headerNames: string[]; headersEncrypted: string | null } {
  const headerNames = Object.keys(headers)
  const isSealed = headerNames.length > 0
  return {
    headerNames,
    headersEncrypted: isSealed ? keyring.seal(JSON.stringify(headers), headersContextOf(webhook)) : null,
  }
}

/** Webhooks whose headers are held in memory at most: 11 kB each. */
const CACHED_LIMIT = 1_000

/** Builds the cache of opened headers. */
export function buildHeaderCache(keyring: Keyring): SealedCache<OwnHeaders> {
  return buildSealedCache(keyring, {
    contextOf: headersContextOf,
    prepare: (text) => JSON.parse(text) as OwnHeaders,
    limit: CACHED_LIMIT,
  })
}

/** Whether a URL posts to another server than before: the headers of a webhook are meant for one. */
export function isOtherOrigin(url: string, before: string): boolean {
  return URL.parse(url)?.origin !== URL.parse(before)?.origin
}

/** Headers are credentials and are dropped with a URL on another server, where a caller could read them. */
export function checkHeadersStay(
  { headerNames, url: before }: WebhookRecord,
  { url, headers }: { url?: string; headers?: OwnHeaders },
): void {
  if (headerNames.length === 0 || headers !== undefined || url === undefined || !isOtherOrigin(url, before)) return
  const text = 'are not sent to another origin: give them again with the new URL, or {} to remove them'
  throw buildFieldProblem({ path: 'headers', code: 'required', message: text, params: { other: 'url' } })
}

/** Given headers always count as a change, because the stored ones are not decrypted. */
export function findHeaderChange(
  { keyring }: { keyring: Keyring },
  { id, headerNames }: WebhookRecord,
  headers: OwnHeaders | undefined,
): Pick<WebhookChange, 'headerNames' | 'headersEncrypted'> {
  if (!headers || (headerNames.length === 0 && Object.keys(headers).length === 0)) return {}
  return sealHeaders(keyring, id, headers)
}
