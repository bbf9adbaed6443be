/** Limit of a path in characters, as given and as used. */
const LENGTH_LIMIT = 2048

/** A base that no path can name: a path that leaves it names another host. */
const SENTINEL = 'https://sentinel.invalid'

/** Characters that URL parsers drop, trim or turn into a slash. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for control characters
const UNSAFE_CHARACTER = /[\u0000-\u0020\u007f-\u009f\u2028\u2029\ufeff\\]/

/** Half a surrogate pair. */
const LONE_SURROGATE = /\p{Surrogate}/u

/** Encoded slash, backslash, NUL, line ends and tab: a server that decodes a path once more would read another path. */
const UNSAFE_ESCAPE = /%(?:2f|5c|00|0d|0a|09)/i

/**
 * The path and query of `text`, as the URL parser writes them, when they stay on the origin they are used on; null for
 * anything else. Drops a fragment. The service applies the same rule to the `next` of a handshake.
 */
export function readNextPath(text: unknown): string | null {
  if (typeof text !== 'string' || text.length > LENGTH_LIMIT || LONE_SURROGATE.test(text)) return null
  if (text[0] !== '/' || text[1] === '/' || UNSAFE_CHARACTER.test(text)) return null
  const url = parseUrl(text, SENTINEL)
  if (url?.origin !== SENTINEL || url.username !== '' || url.password !== '') return null
  // `/a/..//b` becomes `//b`, which names the host b where it is used as a URL.
  if (url.pathname.startsWith('//') || UNSAFE_ESCAPE.test(url.pathname)) return null
  const path = url.pathname + url.search
  return path.length <= LENGTH_LIMIT ? path : null
}

/** The parsed URL; null when it is not one. */
export function parseUrl(text: string, base?: string): URL | null {
  try {
    return new URL(text, base)
  } catch {
    return null
  }
}
