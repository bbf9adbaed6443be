/** A heading of a Markdown document. */
export interface Heading {
  level: number
  title: string
  /** Where its line begins in the text. */
  index: number
}

/** The mark below a heading of docs/contract whose rule the service does not keep today. */
const NOT_BUILT = '*Not built yet.*'

/** The text with fenced code blanked. Every position is kept. */
function blankCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```/gm, (block) => block.replaceAll(/[^\n]/g, ' '))
}

/** The headings of a document, outside fenced code. */
export function listHeadings(text: string): Heading[] {
  return [...blankCode(text).matchAll(/^(#+) (.+)$/gm)].map(({ index, 1: marks = '', 2: title = '' }) => ({
    level: marks.length,
    title,
    index,
  }))
}

/** The anchor that GitHub gives the first heading of this title. */
export function slugOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}

/** Splits a document of docs/contract: what the service does today, and what is marked as not built, subsections included. */
export function splitByMark(text: string): { built: string; planned: string } {
  const headings = listHeadings(text)
  let built = headings[0] ? text.slice(0, headings[0].index) : text
  let planned = ''
  let markedLevel: number | undefined
  headings.forEach(({ level, index }, at) => {
    const section = text.slice(index, headings[at + 1]?.index)
    if (markedLevel !== undefined && level <= markedLevel) markedLevel = undefined
    if (markedLevel === undefined && section.split('\n').slice(1).join('\n').trimStart().startsWith(NOT_BUILT))
      markedLevel = level
    if (markedLevel === undefined) built += section
    else planned += section
  })
  return { built, planned }
}
