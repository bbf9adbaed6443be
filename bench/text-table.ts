/** Lines of cells as text in columns: numbers to the right, words to the left. Pure. */
export function formatTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...lines.map((line) => line[column]?.length ?? 0)))
  const isNumeric = head.map((_title, column) => lines.every((line) => /^[\d.,-]*$/.test(line[column] ?? '')))
  return [head, ...lines]
    .map((line) =>
      line
        .map((cell, column) => (isNumeric[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
