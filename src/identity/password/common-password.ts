import { COMMON_WORDS } from './common-words.ts'
import { isLeakedPassword } from './leaked-password.ts'

/** Rows that passwords are typed along: alphabet, digits and keyboards. Each counts in both directions. */
const ROWS = [
  'abcdefghijklmnopqrstuvwxyz',
  '012345678901234567890',
  '`1234567890-=',
  'qwertyuiop[]',
  'qwertzuiopü',
  'azertyuiop',
  "asdfghjkl;'",
  'qsdfghjklm',
  'zxcvbnm,./',
  'yxcvbnm',
  'wxcvbn',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p',
  'qazwsxedcrfvtgbyhnujmikolp',
  'qweasdzxc',
  '1q2w3e4r5t6y7u8i9o0p',
  'q1w2e3r4t5y6u7i8o9p0',
  'a1b2c3d4e5f6g7h8i9',
  '1a2b3c4d5e6f7g8h9i',
  '147258369',
  '741852963',
  '789456123',
  '!@#$%^&*()_+',
  'йцукенгшщзхъ',
  'фывапролджэ',
  'ячсмитьбю',
].flatMap((row) => [row, [...row].reverse().join('')])

/** Letters by characters that look like them. */
const LOOKS: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '8': 'b',
  '@': 'a',
  $: 's',
  '!': 'i',
  '|': 'l',
  '(': 'c',
}

/** The letters and digits that may stand around a word without making it uncommon; with punctuation, twice as many. */
const ADDED_LIMIT = 4

/** The shortest leaked password that counts as a word to which users add something. */
const LEAKED_WORD_MIN = 5

/**
 * Whether a password is common, leaked or predictable (NIST SP 800-63B section 3.1.1.2): a leaked password or common word
 * with what users add to it, a date, a row of keys or of the alphabet, a repetition. Takes the normalized password. Pure,
 * and linear in its length.
 */
export function isCommonPassword(password: string): boolean {
  const folded = password.toLowerCase()
  return isLeakedPassword(folded) || isTrivial(folded) || isWordWithAddition(folded)
}

/** Whether a text is predictable by itself: rows, repetition, a date. */
function isTrivial(text: string): boolean {
  return isRepetition(text) || isRowWalk(text) || isDate(text)
}

/** Whether a unit of at most 4 characters, or one half, is repeated, the last time perhaps in part. */
function isRepetition(text: string): boolean {
  const lengths = [1, 2, 3, 4, ...(text.length % 2 === 0 ? [text.length / 2] : [])]
  return lengths.some((length) => {
    if (text.length < 2 * length || (length > 4 && !COMMON_WORDS.has(text.slice(0, length)))) return false
    for (let at = length; at < text.length; at += 1) if (text[at] !== text[at - length]) return false
    return true
  })
}

/** Whether runs of at least 3 neighbouring keys make up the whole text but for one character. */
function isRowWalk(text: string): boolean {
  let single = 0
  for (let at = 0; at < text.length; ) {
    const length = measureRun(text, at)
    if (length < 3) single += 1
    if (single > 1) return false
    at += length < 3 ? 1 : length
  }
  return true
}

/** The length of the longest run along a row, or of one key, from `start` on. */
function measureRun(text: string, start: number): number {
  let longest = 1
  while (text[start + longest] === text[start]) longest += 1
  for (const row of ROWS) {
    for (let at = row.indexOf(text[start] as string); at >= 0; at = row.indexOf(text[start] as string, at + 1)) {
      let length = 1
      while (row[at + length] !== undefined && text[start + length] === row[at + length]) length += 1
      longest = Math.max(longest, length)
    }
  }
  return longest
}

const DATE_PATTERNS = [
  /^(?:19|20)\d\d$/,
  /^(?:19|20)\d\d\D?(?:0?[1-9]|1[0-2])\D?(?:0?[1-9]|[12]\d|3[01])$/,
  /^(?:0?[1-9]|[12]\d|3[01])\D?(?:0?[1-9]|1[0-2])\D?(?:(?:19|20)?\d\d)$/,
  /^(?:0?[1-9]|1[0-2])\D?(?:0?[1-9]|[12]\d|3[01])\D?(?:(?:19|20)?\d\d)$/,
  /^(?:(?:19|20)\d\d\D?){2}$/,
]

function isDate(text: string): boolean {
  return DATE_PATTERNS.some((pattern) => pattern.test(text))
}

/** Whether a text is a common word, once or twice, with at most 4 characters or something trivial before and after it. */
function isWordWithAddition(text: string): boolean {
  return [text, text.replaceAll(/[ ._-]/g, '')].some((item) => {
    const { before, core, after } = splitAtLetters(item)
    const cores = [
      { text: core, isNear: isSmall(before) && isSmall(after) },
      // Characters that look like letters may be a part of the word: `p@ssw0rd`, `pa$$`.
      { text: toLetters(before + core), isNear: isSmall(after) },
      { text: toLetters(core + after), isNear: isSmall(before) },
      { text: toLetters(core), isNear: isSmall(before) && isSmall(after) },
      { text: toLetters(item), isNear: true },
    ]
    return cores.some(({ text: word, isNear }) => isNear && isCommonWord(word))
  })
}

/** Text before the first letter, from it to the last one, and after that. */
function splitAtLetters(text: string): { before: string; core: string; after: string } {
  const characters = [...text]
  const isLetter = (character: string) => /\p{L}/u.test(character)
  const first = characters.findIndex(isLetter)
  if (first === -1) return { before: text, core: '', after: '' }
  const end = characters.findLastIndex(isLetter) + 1
  const join = (from: number, to?: number) => characters.slice(from, to).join('')
  return { before: join(0, first), core: join(first, end), after: join(end) }
}

/** Whether what stands around a word has at most 4 letters and digits, or is trivial. */
function isSmall(added: string): boolean {
  const plain = added.replaceAll(/[^\p{L}\p{N}]/gu, '')
  return (plain.length <= ADDED_LIMIT && added.length <= 2 * ADDED_LIMIT) || isTrivial(added)
}

function isCommonWord(text: string): boolean {
  if (COMMON_WORDS.has(text) || (text.length >= LEAKED_WORD_MIN && isLeakedPassword(text))) return true
  const half = text.slice(0, text.length / 2)
  return text === half + half && COMMON_WORDS.has(half)
}

function toLetters(text: string): string {
  return [...text].map((letter) => LOOKS[letter] ?? letter).join('')
}
