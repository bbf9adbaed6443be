const SHOWN_LENGTH = 100

/** Controls, format characters (with those of direction), lone surrogates, unassigned characters, and line ends. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/gu

/** Characters around which mail programs see links: schemes, domains, paths and addresses, without a space. */
const JOINERS = /([.:/\\@#?&=%]|[\u2024\u3002\uff0e\uff61\ufe52\uff20\uff1a\uff0f])(?=\S)/gu

/** A freely chosen name, quoted for a mail: on one line, visible, and never a link, because spaces break it. Pure. */
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
