/** Deeper nesting than any token has. */
const DEPTH_LIMIT = 16

/**
 * Whether some object in `json` names one member twice, or nests deeper than 16 levels. `JSON.parse` keeps the last of two
 * equal names and other parsers the first, so a token with both says different things to different readers.
 *
 * `json` must be text that `JSON.parse` has taken: on other text the answer means nothing, though the scan ends all the same.
 */
export function hasAmbiguousKeys(json: string): boolean {
  /** One entry an open bracket: the names seen in an object, undefined for an array. */
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
      expectsKey = false
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

/** Adds a name as it is meant, not as it is spelled (`\u0061` is `a`). False when it was there. */
function addKey(names: Set<string> | undefined, quoted: string): boolean {
  const name: unknown = JSON.parse(quoted)
  if (names === undefined || typeof name !== 'string') return true
  if (names.has(name)) return false
  names.add(name)
  return true
}
