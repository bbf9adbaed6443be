/** The level of each line that is a heading of a Markdown document, 0 for the others and for lines of code. Pure. */
function levelsOf(lines: readonly string[]): number[] {
  let isCode = false
  return lines.map((line) => {
    if (line.startsWith('```')) isCode = !isCode
    return isCode ? 0 : (/^(#+) /.exec(line)?.[1]?.length ?? 0)
  })
}

/** The section of a Markdown document below a heading, without the heading, until the next one of its level or above. Pure. */
export function findSection(document: string, heading: string): string | undefined {
  const lines = document.split('\n')
  const levels = levelsOf(lines)
  const start = lines.findIndex((line, index) => levels[index] !== 0 && line.replace(/^#+ /, '') === heading)
  if (start < 0) return undefined
  const level = levels[start] ?? 0
  const end = levels.findIndex((other, index) => index > start && other > 0 && other <= level)
  return lines
    .slice(start + 1, end < 0 ? undefined : end)
    .join('\n')
    .trim()
}
