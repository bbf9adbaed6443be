/** Headers of which a request has one: which of two counts, another program may decide otherwise (RFC 9110 section 5.3). */
const SINGLE = new Set(['host', 'authorization', 'content-type', 'origin'])

/** The name of such a header that occurs twice in `rawHeaders` (alternating names and values). Pure, and linear. */
export function findRepeatedHeader(rawHeaders: readonly string[]): string | undefined {
  const seen = new Set<string>()
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? ''
    if (!SINGLE.has(name)) continue
    if (seen.has(name)) return name
    seen.add(name)
  }
  return undefined
}
