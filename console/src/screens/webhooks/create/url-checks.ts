/** Rules of a callback URL (docs/contract/webhooks.md#callback-guard), as far as a browser can tell. */
export const URL_RULES = ['https', 'host', 'length', 'user'] as const

export type UrlRule = (typeof URL_RULES)[number]

const MAX_LENGTH = 2_048

/** Hosts that are never public: names of this machine, and addresses of private networks. */
const PRIVATE =
  /^(?:localhost|.*\.localhost|.*\.local|.*\.internal|(?:0|10|127)(?:\.\d+){3}$|(?:169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d+){2}$|\[(?:::1?|f[cd]|fe80))/i

/**
 * Which rules a URL keeps, undefined for one of which only the API knows; undefined while nothing is typed. The API decides,
 * and also looks the host up. `sink`: URL of the service's own receiver, which development allows
 * (docs/contract/webhooks.md#sink). `allowsPrivate`: whether a setting of the service names private targets, so that a private
 * host may be one. Pure.
 */
export function checkUrl(
  text: string,
  { sink, allowsPrivate = false }: { sink?: string | undefined; allowsPrivate?: boolean } = {},
): Record<UrlRule, boolean | undefined> | undefined {
  const given = text.trim()
  if (given === '') return undefined
  const url = URL.canParse(given) ? new URL(given) : undefined
  const isSink = url !== undefined && url.origin + url.pathname === sink
  const isPrivate = url !== undefined && PRIVATE.test(url.hostname)
  const mayBeAllowed = isPrivate && allowsPrivate && !isSink
  return {
    https: mayBeAllowed && url.protocol === 'http:' ? undefined : isSink || url?.protocol === 'https:',
    host: mayBeAllowed ? undefined : isSink || (url !== undefined && url.hostname !== '' && !isPrivate),
    length: given.length <= MAX_LENGTH,
    user: url !== undefined && url.username === '' && url.password === '',
  }
}
