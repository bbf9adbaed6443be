/** Longest `next`, in characters. */
const MAX_NEXT_LENGTH = 2048

/** A host that no request can name, so that a change of host shows. */
const SENTINEL = 'https://next.invalid'

/**
 * The path and the query of a `next` parameter, for a redirect within one origin; undefined unless it is a plain absolute
 * path. Returns the parsed path and never the given text: `/a/..//evil.test` parses to a path that a browser would read as
 * a host.
 */
export function readNextPath(text: string | undefined): string | undefined {
  if (text === undefined || text.length > MAX_NEXT_LENGTH || !/^\/(?!\/)/.test(text)) return undefined
  // Controls, format characters and spaces of all kinds, and the backslash, which browsers read as a slash.
  if (/[\p{C}\p{Z}\\]/u.test(text)) return undefined
  const url = URL.parse(text, SENTINEL)
  if (url === null || url.origin !== SENTINEL || url.username !== '' || url.password !== '') return undefined
  if (url.pathname.startsWith('//') || /%(?:2f|5c|00|0d|0a|09)/i.test(url.pathname)) return undefined
  return url.pathname + url.search
}
