/** Nesting limit, deeper than that of any token. */
const DEPTH_LIMIT = 16

/**
 * Whether an object in `json` has a duplicate member, or `json` nests deeper than 16 levels. `JSON.parse` keeps the last
 * of two equal names and other parsers the first, so parsers would read different claims.
 *
 * `json` must be valid JSON: for other text the result is undefined, but the scan still ends.
 */
export function hasAmbiguousKeys(json: string): boolean {
  /** One entry for each open bracket: the names of an object so far, undefined for an array. */
  const open: (Set<string> | undefined)[] = []
  let expectsKey = false
  for (let at = 0; at < json.length; at += 1) {
    const character = json[at]
    if (character === '{' || character === '[') {
      open.push(character === '{' ? new Set() : undefined)
      if (open.length > DEPTH_LIMIT) return true
      expectsKey = character === '{'
    } else if (character === '}' || character === ']') {
      open.pop()
    } else if (character === ',') {
      expectsKey = open.at(-1) !== undefined
    } else if (character === '"') {
      const end = findStringEnd(json, at)
      if (expectsKey && !addKey(open.at(-1), json.slice(at, end + 1))) return true
      expectsKey = false
      at = end
    }
  }
  return false
}

/** The index of the quote that closes the string which opens at `start`. */
function findStringEnd(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at += 1) {
    if (json[at] === '\\') at += 1
    else if (json[at] === '"') return at
  }
  return json.length
}

/** Adds a name with its escapes decoded (`\u0061` is `a`). False for a duplicate. */
function addKey(names: Set<string> | undefined, quoted: string): boolean {
  const name: unknown = JSON.parse(quoted)
  if (names === undefined || typeof name !== 'string') return true
  if (names.has(name)) return false
  names.add(name)
  return true
}
