/** Rows of keys and of the alphabet: a walk along one of them is no secret. */
const ROWS = ['qwertyuiop', 'asdfghjkl', 'zxcvbnm', '1234567890']

/** Neighbouring characters in a row, in either direction. */
const NEIGHBOURS = new Set(
  ROWS.flatMap((row) =>
    Array.from(row.slice(1), (next, index) => [`${row[index]}${next}`, `${next}${row[index]}`]).flat(),
  ),
)

/** The length of a piece that, repeated, adds nothing. */
const PIECE = 3

/**
 * Upper estimate of the entropy in bits: each character counts as drawn from the characters in use, unless it repeats
 * an earlier piece or continues a sequence (`aaaa`, `abcd`, `9876`, `qwerty`). Linear in the length. Pure.
 */
export function estimateBits(secret: string): number {
  const text = secret.toLowerCase()
  const pieces = new Set<string>()
  let novel = 0
  for (let index = 0; index < text.length; index += 1) {
    const piece = index + 1 < PIECE ? undefined : text.slice(index + 1 - PIECE, index + 1)
    if (!(piece !== undefined && pieces.has(piece)) && !isSequence(text, index)) novel += 1
    if (piece !== undefined) pieces.add(piece)
  }
  return novel * Math.log2(new Set(secret).size)
}

/** Whether the character continues a sequence of step one, minus one or zero, or along a keyboard row. */
function isSequence(text: string, index: number): boolean {
  if (index === 0) return false
  const step = text.charCodeAt(index) - text.charCodeAt(index - 1)
  return Math.abs(step) <= 1 || NEIGHBOURS.has(text.slice(index - 1, index + 1))
}

/**
 * The estimate below which a secret counts as guessable. Of 1,000,000 random texts of 32 hexadecimal digits the lowest is 49;
 * a word that is repeated to 32 characters has some 30.
 */
const SECRET_BITS = 48

/** Minimum for a token, each guess of which is a request: of 3,000,000 random texts of 16 characters 11 are below. */
const TOKEN_BITS = 24

/** Whether a secret of the service can be guessed offline. */
export function isGuessableSecret(secret: string): boolean {
  return estimateBits(secret) < SECRET_BITS
}

/** Whether a token can be guessed by requests. */
export function isGuessableToken(token: string): boolean {
  return estimateBits(token) < TOKEN_BITS
}
