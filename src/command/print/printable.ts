/** Controls but the line end, format characters (with those of direction), lone surrogates, and separators of lines. */
const UNPRINTABLE = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Joiners of emoji and letters, without an effect of their own. */
const JOINERS = new Set(['\u200c', '\u200d'])

/** Escapes control and direction characters as JavaScript and JSON do: names and answers are untrusted. */
export function toPrintable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    if (JOINERS.has(character)) return character
    return Array.from({ length: character.length }, (_, index) => {
      return `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
    }).join('')
  })
}

/** Printable text on one line: a line end in it could imitate output of the command. */
export function toPrintableLine(text: string): string {
  return toPrintable(text).replaceAll('\n', '\\n')
}
