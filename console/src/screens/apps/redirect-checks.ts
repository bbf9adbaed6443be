import type { Schemas } from '@signalbox/client'

/** Findings on a redirect URI (docs/contract/oauth.md#redirect-uris): what the API refuses, and what deserves a thought. */
export type RedirectFinding =
  | 'absolute'
  | 'wildcard'
  | 'fragment'
  | 'user'
  | 'https'
  | 'scheme-web'
  | 'scheme-dot'
  | 'loopback'

/** A redirect URI with its finding; `isRefused` when the API does not take it. */
export interface CheckedRedirect {
  uri: string
  finding: RedirectFinding | undefined
  isRefused: boolean
}

const URI_LIMIT = 2_048
const LOOPBACK_HOSTS: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/** The redirect URIs of a text, one in each line or word. Pure. */
export const readRedirects = (text: string): string[] => text.split(/\s+/).filter((part) => part !== '')

/** Checks redirect URIs as far as a browser can tell. The API decides. Pure. */
export function checkRedirects(
  text: string,
  applicationType: Schemas['OauthClient']['application_type'],
): CheckedRedirect[] {
  return [...new Set(readRedirects(text))].map((uri) => {
    const finding = findRedirect(uri, applicationType)
    return { uri, finding, isRefused: finding !== undefined && finding !== 'loopback' }
  })
}

function findRedirect(uri: string, applicationType: string): RedirectFinding | undefined {
  if (/[*\\]/.test(uri)) return 'wildcard'
  const url = uri.length <= URI_LIMIT ? URL.parse(uri) : null
  if (!url) return 'absolute'
  if (uri.includes('#')) return 'fragment'
  if (url.username !== '' || url.password !== '') return 'user'
  if (url.protocol === 'https:') return undefined
  if (url.protocol === 'http:') return LOOPBACK_HOSTS.includes(url.hostname) ? 'loopback' : 'https'
  if (applicationType === 'web') return 'scheme-web'
  return url.protocol.includes('.') ? undefined : 'scheme-dot'
}
