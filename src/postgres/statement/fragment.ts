import { CompiledQuery } from 'kysely'
import { compileNames, valuesOf } from './named-text.ts'

/**
 * A part of a statement with its values, compiled: `$1`, `$2`, ... take them in order. The text of a name never changes, so a
 * statement of several parts is put together once for each combination of names.
 */
export interface Fragment {
  name: string
  text: string
  values: readonly unknown[]
}

/** A part with a constant text, in which `$name` takes the value of that name. Returns what fills it. */
export function fragment<Params extends object>(name: string, text: string): (params: Params) => Fragment {
  const compiled = compileNames(text)
  return (params) => ({ name, text: compiled.text, values: valuesOf(compiled, params) })
}

/** The columns of a table that rows are inserted into, each with its type. */
export type InsertColumns = readonly (readonly [name: string, type: string])[]

/** The names of columns, as SQL. */
export function listNames(columns: InsertColumns): string {
  return columns.map(([name]) => name).join(', ')
}

/** The placeholder of a column: `$document_id`, behind a prefix where two lists of columns share a statement. */
const placeOf = (column: string, prefix: string) => `$${prefix}${column.replaceAll('"', '')}`

/** `$document_id, $event, ...`: a placeholder for each column of one row. */
export function listPlaces(columns: InsertColumns, prefix = ''): string {
  return columns.map(([name]) => placeOf(name, prefix)).join(', ')
}

/** `$document_id::uuid[], $event::text[], ...`: an array for each column of several rows. */
export function listArrays(columns: InsertColumns, prefix = ''): string {
  return columns.map(([name, type]) => `${placeOf(name, prefix)}::${type}[]`).join(', ')
}

/** The values of `listPlaces`, given those of a row in the order of its columns. */
export function nameValues(columns: InsertColumns, row: readonly unknown[], prefix = ''): Record<string, unknown> {
  return Object.fromEntries(columns.map(([name], index) => [placeOf(name, prefix).slice(1), row[index]]))
}

/** The values of `listArrays`: those of rows, turned into one array for each column. */
export function transpose(
  columns: InsertColumns,
  rows: readonly (readonly unknown[])[],
  prefix = '',
): Record<string, unknown[]> {
  return Object.fromEntries(
    columns.map(([name], index) => [placeOf(name, prefix).slice(1), rows.map((row) => row[index])]),
  )
}

/** A fragment as a statement of its own. */
export function compileFragment<Row>({ text, values }: Fragment): CompiledQuery<Row> {
  return CompiledQuery.raw(text, [...values])
}

/** Texts by the names of their parts. */
const texts = new Map<string, string>()

/** Puts named parts together: `write` gets the text of each with its placeholders counted on from the parts before it. */
export function joinFragments<Row>(
  parts: readonly Fragment[],
  write: (texts: readonly string[]) => string,
): CompiledQuery<Row> {
  const name = parts.map((part) => part.name).join(' ')
  let text = texts.get(name)
  if (text === undefined) {
    let before = 0
    const shifted = parts.map((part) => {
      const moved = part.text.replace(/\$(\d+)/g, (_, place: string) => `$${Number(place) + before}`)
      before += part.values.length
      return moved
    })
    text = write(shifted)
    texts.set(name, text)
  }
  return CompiledQuery.raw(
    text,
    parts.flatMap((part) => [...part.values]),
  )
}
