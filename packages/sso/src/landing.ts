import { parseUrl } from './next-path.ts'

/** The query parameters of a handshake. */
const TOKEN = 'sso_token'
const ERROR = 'sso_error'

/** A URL that a browser arrived at with a handshake token. */
export type Landing = {
  /** The token; undefined when the URL holds more than one. */
  readonly token: string | undefined
  /** Path and query without the parameters of a handshake. */
  readonly cleanPath: string
}

/**
 * Reads the landing of a request; undefined when its URL holds no handshake token, or it is neither a GET nor, with
 * `isConfirmed`, the POST of `buildQuestion`.
 */
export function readLanding(request: Request, isConfirmed: boolean): Landing | undefined {
  const isLanding = request.method === 'GET' || (request.method === 'POST' && isConfirmed)
  const url = isLanding ? parseUrl(request.url) : null
  if (!url?.searchParams.has(TOKEN)) return undefined
  const tokens = url.searchParams.getAll(TOKEN)
  return { token: tokens.length === 1 ? tokens[0] : undefined, cleanPath: url.pathname + cleanQuery(url.search) }
}

/** The query without the parameters of a handshake; the others stay as they were written. */
function cleanQuery(search: string): string {
  const kept = search
    .slice(1)
    .split('&')
    .filter((part) => part !== '' && ![TOKEN, ERROR].includes([...new URLSearchParams(part).keys()][0] ?? ''))
  return kept.length > 0 ? `?${kept.join('&')}` : ''
}

/** A path with an error for the app to show. */
export function addError(path: string, error: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}${ERROR}=${error}`
}

/** Whether the URL of a request holds an error of a handshake. */
export function hasError(request: Request): boolean {
  return parseUrl(request.url)?.searchParams.has(ERROR) ?? false
}

/**
 * Why a request must not use the token up: a browser fetches it ahead (`Sec-Purpose`), or it is an image or another part
 * of a page and no navigation (Fetch Metadata). Undefined for a navigation, and for a browser that sends neither header.
 */
export function findIgnored({ headers }: Request): 'prefetch' | 'not_a_navigation' | undefined {
  const purpose = `${headers.get('sec-purpose') ?? ''};${headers.get('purpose') ?? ''};${headers.get('x-moz') ?? ''}`
  if (/prefetch|prerender|preview/i.test(purpose)) return 'prefetch'
  const destination = headers.get('sec-fetch-dest')
  return destination === null || destination === 'document' ? undefined : 'not_a_navigation'
}
