/** Limit of a path in characters, as given and as emitted. */
export const NEXT_LENGTH_LIMIT = 2048

/** A base that no path can name: a path that leaves it names another host. */
const SENTINEL = 'https://sentinel.invalid'

/** Characters that URL parsers drop, trim or turn into a slash: controls, spaces, separators, the backslash. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for control characters
export const UNSAFE_CHARACTER = /[\u0000-\u0020\u007f-\u009f\u2028\u2029\ufeff\\]/

/** Encoded slash, backslash, NUL, line ends and tab: a server that decodes a path once more would read another path. */
const UNSAFE_ESCAPE = /%(?:2f|5c|00|0d|0a|09)/i

/**
 * The path and query where a target app continues (docs/contract/sso.md#next), as the WHATWG URL parser writes them; null for
 * anything else. The result, resolved against any origin, stays on that origin, and the function returns it unchanged.
 * A fragment is dropped.
 */
export function readNextPath(text: unknown): string | null {
  if (typeof text !== 'string' || text.length > NEXT_LENGTH_LIMIT || !text.isWellFormed()) return null
  if (text[0] !== '/' || text[1] === '/' || UNSAFE_CHARACTER.test(text)) return null
  const url = URL.parse(text, SENTINEL)
  if (url?.origin !== SENTINEL || url.username !== '' || url.password !== '') return null
  // `/a/..//b` becomes `//b`, which names the host b where it is used as a URL.
  if (url.pathname.startsWith('//') || UNSAFE_ESCAPE.test(url.pathname)) return null
  const path = url.pathname + url.search
  return path.length <= NEXT_LENGTH_LIMIT ? path : null
}
