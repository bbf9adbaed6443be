import { hasPlainHost } from '../../http/request/plain-host.ts'
import type { ClientRecord } from './client.store.ts'

/** Longest URI of a client, in characters. */
export const URI_LENGTH_LIMIT = 2048

/** Hosts of the machine itself (RFC 8252 section 7.3). */
const LOOPBACK_HOSTS = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Whether a URL is https, or http on the machine itself. */
export function isHttpsOrLoopback(url: URL | null): boolean {
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK_HOSTS.has(url.hostname))
}

/** Schemes with a meaning of their own to a browser or the system. */
const RESERVED_SCHEMES = new Set([
  'javascript:',
  'data:',
  'file:',
  'blob:',
  'about:',
  'vbscript:',
  'ws:',
  'wss:',
  'ftp:',
])

/**
 * The rule that a redirect URI breaks, in words that complete "must ..."; undefined when it breaks none. Pure
 * (docs/contract/oauth.md#redirect-uris). At a request the URI is compared exactly; only the port of a loopback URI of a
 * native client is free.
 */
export function findRedirectFault(uri: string, applicationType: ClientRecord['applicationType']): string | undefined {
  const url = uri.length <= URI_LENGTH_LIMIT ? URL.parse(uri) : null
  if (!url) return `be an absolute URI of at most ${URI_LENGTH_LIMIT} characters`
  if (/[\s\p{C}*\\]/u.test(uri)) return 'hold no space, no control character, no backslash and no wildcard'
  if (uri.includes('#')) return 'have no fragment'
  if (!hasPlainHost(url)) return 'have a host of letters, digits, hyphens and dots'
  if (url.username !== '' || url.password !== '') return 'have no user name'
  if (/(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\?#]|$)/i.test(uri)) return 'have no dot segments'
  if (isHttpsOrLoopback(url)) return undefined
  if (url.protocol === 'http:') return 'be https, except on the machine itself (http://127.0.0.1)'
  if (applicationType === 'web') return 'be https; custom schemes are for native clients'
  if (RESERVED_SCHEMES.has(url.protocol)) return 'not use a scheme that the system reserves'
  // RFC 8252 section 7.1: a reversed domain name, so that two apps do not choose the same scheme.
  return url.protocol.includes('.') ? undefined : 'use a scheme with a dot, such as com.example.app:'
}

/** Destination of a form's redirect: the origin, or the custom scheme (CSP, `form-action`). */
export function findFormTarget(uri: string): string {
  const url = new URL(uri)
  return url.origin === 'null' ? url.protocol : url.origin
}
