/**
 * The target of a request (RFC 9112 section 3.2), parsed once: router, limits and mounted protocols use the same text.
 * Ambiguous targets are refused.
 */

/** Scheme and authority of a target in absolute form (RFC 9112 section 3.2.2). */
const AUTHORITY = /^https?:\/\/[^/?#]*/i

/** Octets outside visible ASCII, which no target has (RFC 3986 section 3.3); parsers trim them differently. */
const FOREIGN_OCTET = /[^!-~]/

/** A target in origin form. Other forms than the absolute one are returned unchanged: no path begins like them. */
export function toOriginForm(target: string): string {
  if (target.startsWith('/')) return target
  const authority = AUTHORITY.exec(target)?.[0]
  if (authority === undefined) return target
  const rest = target.slice(authority.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** The reason of a refused target, as a sentence with the remedy; undefined for a valid one. Takes linear time. */
export function findTargetFault(target: string): string | undefined {
  if (target.includes('#')) return 'The URL contains #, which a browser never sends. Remove the # and what follows it.'
  if (target.includes('%00')) return 'The URL contains %00. Remove it.'
  const end = target.indexOf('?')
  const path = end === -1 ? target : target.slice(0, end)
  if (path.includes('\\')) return 'The path of the URL contains a backslash. Write %5C for it.'
  if (FOREIGN_OCTET.test(path)) return 'The path of the URL contains characters that are not ASCII. Write them as %XX.'
  return undefined
}
