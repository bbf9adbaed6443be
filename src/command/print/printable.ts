/** Controls but the line end, format characters (with those of direction), lone surrogates, and separators of lines. */
const UNPRINTABLE = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Joiners of emoji and letters, without an effect of their own. */
const JOINERS = new Set(['\u200c', '\u200d'])

/**
 * Text as a terminal may print it: what would move the cursor, colour, rename or hide is written as an escape of
 * JavaScript, which JSON has too. Names, answers of receivers and events hold what others chose. Pure.
 */
export function toPrintable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    if (JOINERS.has(character)) return character
    return Array.from({ length: character.length }, (_, index) => {
      return `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
    }).join('')
  })
}

/** The same on one line: a line end of the text would begin a line that the command seems to say. */
export function toPrintableLine(text: string): string {
  return toPrintable(text).replaceAll('\n', '\\n')
}
