import { isLoopbackOrigin } from '../../base/loopback.ts'
import { UNSAFE_CHARACTER } from './next-path.ts'

/** Limit of a target URL in characters. */
export const TARGET_LENGTH_LIMIT = 2048

/** Rules for the target apps of a handshake (docs/contract/sso.md#targets). */
export interface TargetRules {
  /** `SSO_TARGETS`: origins. */
  origins: readonly string[]
  /** Whether every loopback origin is a target too: in development. */
  allowLoopback: boolean
}

/** Whether a handshake may open `origin`: exactly one of the registered ones. */
export function isTarget(origin: string, { origins, allowLoopback }: TargetRules): boolean {
  if (origins.includes(origin)) return true
  return allowLoopback && isLoopbackOrigin(origin)
}

/** The parsed URL of a target app; null for one that is not http(s), holds user-info, or whose origin is not registered. */
export function readTarget(text: string, rules: TargetRules): URL | null {
  if (text.length > TARGET_LENGTH_LIMIT || UNSAFE_CHARACTER.test(text) || !/^https?:\/\/[^/]/i.test(text)) return null
  const url = URL.parse(text)
  if (url?.username !== '' || url.password !== '') return null
  return isTarget(url.origin, rules) ? url : null
}

/** The site of the service. */
export interface OwnSite {
  baseUrl: () => string
  /** `SESSION_COOKIE_DOMAIN`: every host of it gets the session cookie. */
  cookieDomain: string | undefined
}

/**
 * Whether a browser sends the session cookie of the service to `target` as well, so that no handshake is needed: the host is
 * that of the service, or lies in the domain of the cookie. A cookie knows no port, and without `Secure` no scheme (RFC
 * 6265 section 8.5), but a session must not move from https to http.
 */
export function isSameSite(target: URL, { baseUrl, cookieDomain }: OwnSite): boolean {
  const own = URL.parse(baseUrl())
  if (own?.protocol !== target.protocol) return false
  if (own.hostname === target.hostname) return true
  return cookieDomain !== undefined && `.${target.hostname}`.endsWith(`.${cookieDomain}`)
}
