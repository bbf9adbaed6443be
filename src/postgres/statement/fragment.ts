import { CompiledQuery } from 'kysely'

/**
 * A part of a statement with the values of its placeholders `$1`, `$2`, ... The text of a name never changes, so a
 * statement of several parts is put together once for each combination of names.
 */
export interface Fragment {
  name: string
  text: string
  values: readonly unknown[]
}

/** The columns of a table that rows are inserted into, each with its type. */
export type InsertColumns = readonly (readonly [name: string, type: string])[]

/** The names of columns, as SQL. */
export function listNames(columns: InsertColumns): string {
  return columns.map(([name]) => name).join(', ')
}

/** `$1, $2, ...`: a placeholder for each column of one row. */
export function listPlaces(columns: InsertColumns): string {
  return columns.map((_, index) => `$${index + 1}`).join(', ')
}

/** `$1::uuid[], $2::text[], ...`: an array for each column of several rows, from the placeholder `$first` on. */
export function listArrays(columns: InsertColumns, first = 1): string {
  return columns.map(([, type], index) => `$${index + first}::${type}[]`).join(', ')
}

/** The values of `listArrays`: the values of rows, turned into one array for each column. */
export function transpose(columns: InsertColumns, rows: readonly (readonly unknown[])[]): unknown[][] {
  return columns.map((_, index) => rows.map((row) => row[index]))
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
