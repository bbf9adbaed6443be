import { hasPlainHost } from '../../../http/request/plain-host.ts'

/** One entry of `AUTH_REDIRECT_ALLOW_LIST`: an origin, or a custom scheme with or without a host; each with a path prefix. */
export interface AllowedRedirect {
  /** With the colon, in lower case. */
  protocol: string
  /** Host and port; null for a custom scheme that takes any. */
  host: string | null
  /** The path that the URL equals or is below; empty for any. */
  path: string
  /** The entry as text, for the log. */
  text: string
}

/** Schemes that no entry may name: they run code, read local files, or hand the URL to another program than the app. */
export const FORBIDDEN_SCHEMES: ReadonlySet<string> = new Set(
  [
    'about blob chrome chrome-extension content data feed file filesystem ftp ftps googlechrome intent jar javascript',
    'livescript mailto moz-extension ms-browser-extension resource shell sms ssh tel vbscript view-source wss ws',
  ]
    .join(' ')
    .split(' ')
    .map((name) => `${name}:`),
)

/** Parses `AUTH_REDIRECT_ALLOW_LIST`, comma-separated. Throws an Error whose message completes "<NAME> ...". */
export function parseRedirectAllowList(value: string): AllowedRedirect[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(parseEntry)
}

function parseEntry(text: string, index: number): AllowedRedirect {
  const fail = (rule: string) => new Error(`must list origins and custom schemes: entry ${index + 1} ${rule}`)
  if (/[\p{C}\p{Z}\\*]/u.test(text)) throw fail('holds a space, a backslash or a *; name each origin')
  const url = URL.parse(text)
  if (url === null) throw fail('has no scheme; write https://app.example.com or com.example.app:')
  if (FORBIDDEN_SCHEMES.has(url.protocol)) throw fail('names a scheme that is never allowed')
  if (url.search || url.hash || text.includes('@')) throw fail('has a query, a fragment or a user name; remove it')
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
  if (isWeb && !/^https?:\/\/[^/]/i.test(text)) throw fail('has no host; write https://app.example.com')
  if (!hasPlainHost(url)) throw fail('has a host with other characters than letters, digits, hyphens and dots')
  if (/%(?:2f|5c)/i.test(url.pathname)) throw fail('has an escaped slash in its path; remove it')
  const host = isWeb || url.host !== '' ? url.host : null
  return { protocol: url.protocol, host, path: url.pathname === '/' ? '' : url.pathname, text }
}

const COMPARED_LENGTH = 200

/** The entry most similar to a text, by the length of their common start and end. Null without entries. */
export function findNearestEntry(text: string, entries: readonly AllowedRedirect[]): string | null {
  const compared = text.slice(0, COMPARED_LENGTH)
  let best: { text: string; score: number } | null = null
  for (const entry of entries) {
    const score = countCommon(compared, entry.text)
    if (best === null || score > best.score) best = { text: entry.text, score }
  }
  return best?.text ?? null
}

function countCommon(text: string, other: string): number {
  const shorter = Math.min(text.length, other.length)
  let start = 0
  while (start < shorter && text[start] === other[start]) start += 1
  let end = 0
  while (end < shorter - start && text.at(-1 - end) === other.at(-1 - end)) end += 1
  return start + end
}
