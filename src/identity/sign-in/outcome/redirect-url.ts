import { isLoopbackHostname } from '../../../base/loopback.ts'
import { Problem } from '../../../http/problem/problem.ts'
import { hasPlainHost } from '../../../http/request/plain-host.ts'
import { type AllowedRedirect, FORBIDDEN_SCHEMES, findNearestEntry } from './redirect-allow-list.ts'

/** Longest `redirect_url`, in characters. */
export const MAX_REDIRECT_URL_LENGTH = 2048

/** Return URLs of a sign-in (docs/contract/social-login.md#redirect-allow-list). */
export interface RedirectRules {
  /** `AUTH_REDIRECT_ALLOW_LIST`. */
  allowList: readonly AllowedRedirect[]
  /** Whether loopback origins are also allowed: in development. */
  allowLoopback: boolean
}

/** A return URL that passed the rules. */
export interface RedirectTarget {
  /** `web`: http or https. `deep-link`: any other scheme. */
  kind: 'web' | 'deep-link'
  /** The parsed URL as text. Redirect to this and never to the text of the request. */
  url: string
  /** Its origin, or its scheme with a colon, as `form-action` names it. */
  formTarget: string
}

/** The rule that a return URL breaks. */
export type RedirectRule =
  | 'length'
  | 'forbidden_character'
  | 'not_absolute'
  | 'forbidden_scheme'
  | 'user_info'
  | 'forbidden_host'
  | 'ambiguous_path'
  | 'not_listed'

/** A refused return URL. For the log only: the rule, and the entry of the allow-list that resembles the URL most. */
export interface RedirectRefusal {
  kind: 'refused'
  rule: RedirectRule
  nearest: string | null
}

/** Controls, formats, surrogates, unassigned, spaces and the backslash: parsers drop them, or read separators. */
const FORBIDDEN_CHARACTER = /[\p{C}\p{Z}\\]/u

/** Escapes that some servers decode before they split a path: slash, backslash, NUL, line ends, tab. */
const ENCODED_SEPARATOR = /%(?:2f|5c|00|0d|0a|09)/i

/** Checks a return URL. Throws 422 `redirect_url_not_allowed`, whose reason is in the log only. */
export function checkRedirectUrl(text: string, rules: RedirectRules): RedirectTarget {
  const target = classifyRedirectUrl(text, rules)
  if (target.kind !== 'refused') return target
  const { rule, nearest } = target
  throw new Problem('redirect_url_not_allowed', 'The redirect_url is not one that this service may return to.', {
    reason: nearest === null ? `redirect_url: ${rule}` : `redirect_url: ${rule}; the nearest entry is ${nearest}`,
  })
}

/** Classifies a return URL by the rules. Pure; takes any text. */
export function classifyRedirectUrl(text: string, rules: RedirectRules): RedirectTarget | RedirectRefusal {
  const refuse = (rule: RedirectRule): RedirectRefusal => {
    return { kind: 'refused', rule, nearest: findNearestEntry(text, rules.allowList) }
  }
  if (text === '' || text.length > MAX_REDIRECT_URL_LENGTH) return refuse('length')
  if (FORBIDDEN_CHARACTER.test(text)) return refuse('forbidden_character')
  const url = /^[a-z][a-z0-9+.-]*:/i.test(text) ? URL.parse(text) : null
  if (url === null || url.href.length > MAX_REDIRECT_URL_LENGTH) return refuse('not_absolute')
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
  if (!isWeb && FORBIDDEN_SCHEMES.has(url.protocol)) return refuse('forbidden_scheme')
  // The parser also takes `https:host` and `https:///host`, which other programs read as a path.
  if (isWeb && !/^https?:\/\/[^/?#]/i.test(text)) return refuse('not_absolute')
  if (hasUserInfo(text, url)) return refuse('user_info')
  if (!hasPlainHost(url)) return refuse('forbidden_host')
  if (isAmbiguousPath(url, isWeb)) return refuse('ambiguous_path')
  if (!isListed(url, rules)) return refuse('not_listed')
  return {
    kind: isWeb ? 'web' : 'deep-link',
    url: url.href,
    formTarget: isWeb ? url.origin : url.protocol,
  }
}

/** Also an empty user-info (`https://@host`), which the parser drops. */
function hasUserInfo(text: string, url: URL): boolean {
  const authority = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(text)?.[1] ?? ''
  return authority.includes('@') || url.username !== '' || url.password !== ''
}

/** Whether programs read the path in different ways: by a decoded separator, or a host after two slashes. */
function isAmbiguousPath({ pathname }: URL, isWeb: boolean): boolean {
  return ENCODED_SEPARATOR.test(pathname) || (isWeb && pathname.startsWith('//'))
}

function isListed(url: URL, { allowList, allowLoopback }: RedirectRules): boolean {
  if (allowLoopback && isLoopback(url)) return true
  return allowList.some((entry) => {
    if (entry.protocol !== url.protocol) return false
    if (entry.host !== null && entry.host !== url.host) return false
    return isWithin(url.pathname, entry.path)
  })
}

/** Whether a path is the prefix or below it, by whole segments: `/app` covers `/app/x` and not `/apple`. */
function isWithin(path: string, prefix: string): boolean {
  if (prefix === '' || path === prefix) return true
  return path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`)
}

/** Whether a web URL names this machine (RFC 8252 section 7.3). */
function isLoopback({ protocol, hostname }: URL): boolean {
  return (protocol === 'http:' || protocol === 'https:') && isLoopbackHostname(hostname)
}
