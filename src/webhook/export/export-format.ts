/** The export formats. */
export const EXPORT_FORMATS = ['csv', 'json', 'ndjson'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

export const EXPORT_MEDIA: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  json: 'application/json; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
}

/** A row whose members are plain values, and lists of texts. */
export type ExportedRow = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

/** Starts of formulas in a spreadsheet (OWASP, CSV injection): signs, full-width forms, skipped white space. */
const FORMULA_START = /^[=+\-@\t\r\n＝＋－＠]/

/**
 * Starts of formulas after separators of cells or rows in some locales and programs. Quotation marks do not help:
 * they count only at the start of a cell, which such a program sees elsewhere. The pattern matches the sign first and
 * looks back at most to the previous sign, so that it takes linear time.
 */
const INNER_FORMULA = /[=+\-@＝＋－＠](?<=[;|\t\r\n]["'\s]*.)/g

/**
 * One cell of RFC 4180. A text that a spreadsheet would run as a formula begins with an apostrophe, which keeps it text, and
 * so does what follows a separator of other countries in it; null is an empty cell, and a list its JSON.
 */
export function formatCell(value: ExportedRow[string] | undefined): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'object') return formatCell(JSON.stringify(value))
  const inner = typeof value === 'string' ? value.replace(INNER_FORMULA, "'$&") : String(value)
  const text = typeof value === 'string' && FORMULA_START.test(value) ? `'${inner}` : inner
  return /[",;|\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Writes rows in one format, a piece for each batch, so that only one batch is in memory. `columns` sets the order. */
export async function* formatExport(
  format: ExportFormat,
  columns: readonly string[],
  batches: AsyncIterable<readonly ExportedRow[]>,
): AsyncGenerator<string> {
  const toLine = (row: ExportedRow) => columns.map((column) => formatCell(row[column])).join(',')
  const toObject = (row: ExportedRow) =>
    JSON.stringify(Object.fromEntries(columns.map((column) => [column, row[column] ?? null])))
  if (format === 'csv') yield `${columns.join(',')}\r\n`
  if (format === 'json') yield '['
  let isFirst = true
  for await (const batch of batches) {
    if (batch.length === 0) continue
    if (format === 'csv') yield `${batch.map(toLine).join('\r\n')}\r\n`
    if (format === 'ndjson') yield `${batch.map(toObject).join('\n')}\n`
    if (format === 'json') yield `${isFirst ? '\n' : ',\n'}${batch.map(toObject).join(',\n')}`
    isFirst = false
  }
  if (format === 'json') yield isFirst ? ']\n' : '\n]\n'
}
