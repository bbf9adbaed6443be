import fc from 'fast-check'

/** Printable ASCII, then the other characters of ASCII: what a failing test is shrunk to first. */
const PRINTABLE_COUNT = 95
const SURROGATES = { from: 0xd800, count: 0x800 }
const LAST_CODE_POINT = 0x10ffff

/**
 * Any character of Unicode, for `fc.string({ unit: anyCharacter })`: the same as the unit `binary`, without its table of a
 * million characters, which takes each process of tests a second of work.
 */
export const anyCharacter: fc.Arbitrary<string> = fc
  .nat(LAST_CODE_POINT - SURROGATES.count)
  .map((index) => String.fromCodePoint(toCodePoint(index)), toIndex)

function toCodePoint(index: number): number {
  if (index < PRINTABLE_COUNT) return index + 32
  if (index < 127) return index - PRINTABLE_COUNT
  return index < SURROGATES.from ? index : index + SURROGATES.count
}

/** The inverse. Throws for what is not one character: fast-check asks so whether a text can come of this. */
function toIndex(text: unknown): number {
  const code = typeof text === 'string' ? text.codePointAt(0) : undefined
  if (code === undefined || String.fromCodePoint(code) !== text) throw new Error('not one character')
  if (code < 32) return code + PRINTABLE_COUNT
  if (code < 127) return code - 32
  if (code < SURROGATES.from) return code
  if (code < SURROGATES.from + SURROGATES.count) throw new Error('half of a character')
  return code - SURROGATES.count
}
