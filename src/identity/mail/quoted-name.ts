/** Longest name that a mail shows, in characters. */
const SHOWN_LENGTH = 100

/** Controls, format characters (with those of direction), lone surrogates, unassigned characters, and line ends. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/gu

/**
 * Texts that mail programs turn into links: schemes, domains, paths and addresses stand around these, without a space.
 */
const JOINERS = /([.:/\\@#?&=%]|[\u2024\u3002\uff0e\uff61\ufe52\uff20\uff1a\uff0f])(?=\S)/gu

/**
 * A name that somebody chose freely, in quotation marks, as a mail may show it to a user who does not know who chose it:
 * on one line, without characters that turn the direction of the text or hide, and never a link, because a space stands
 * where a link would go on. Pure.
 */
export function quoteName(name: string): string {
  const visible = name.replace(INVISIBLE, ' ').replace(/["\u201c\u201d\u201e\u00ab\u00bb\uff02]/gu, "'")
  const broken = visible
    .replace(JOINERS, '$1 ')
    .replace(/(?<=\S)@/gu, ' @')
    .replace(/\s+/gu, ' ')
    .trim()
  const characters = Array.from(broken)
  return `"${characters.length > SHOWN_LENGTH ? `${characters.slice(0, SHOWN_LENGTH).join('').trim()}…` : broken}"`
}
