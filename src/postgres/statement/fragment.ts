import { CompiledQuery } from 'kysely'
import { compileNames, valuesOf } from './named-text.ts'

/**
 * A part of a statement with its values, compiled: `$1`, `$2`, ... take them in order. A name has one text, so a
 * statement of several parts is composed once for each combination of names (`buildJoin`).
 */
export interface Fragment {
  name: string
  text: string
  values: readonly unknown[]
}

/** Numbers the texts of fragments. */
let fragmentTexts = 0

/** Makes the name of a constant text unique: no other text replaces it in a composed statement. */
export function nameText(name: string): string {
  fragmentTexts += 1
  return `${name} ${fragmentTexts}`
}

/** A part with a constant text, in which `$name` takes the value of that name. Returns a function of the values. */
export function fragment<Params extends object>(name: string, text: string): (params: Params) => Fragment {
  const compiled = compileNames(text)
  const unique = nameText(name)
  return (params) => ({ name: unique, text: compiled.text, values: valuesOf(compiled, params) })
}

/** The columns of a table that rows are inserted into, each with its type. */
export type InsertColumns = readonly (readonly [name: string, type: string])[]

/** The names of columns, as SQL. */
export function listNames(columns: InsertColumns): string {
  return columns.map(([name]) => name).join(', ')
}

/** The names of the placeholders of columns, by their prefix. They are looked up for every row that is recorded. */
const placeNames = new WeakMap<InsertColumns, Map<string, readonly string[]>>()

/** The name of each column without quotes, behind a prefix where two lists of columns share a statement. */
function namePlaces(columns: InsertColumns, prefix = ''): readonly string[] {
  const cached = placeNames.get(columns) ?? new Map<string, readonly string[]>()
  placeNames.set(columns, cached)
  const names = cached.get(prefix) ?? columns.map(([name]) => `${prefix}${name.replaceAll('"', '')}`)
  cached.set(prefix, names)
  return names
}

/** `$document_id, $event, ...`: a parameter for each column of one row. */
export function listPlaces(columns: InsertColumns): string {
  return namePlaces(columns)
    .map((name) => `$${name}`)
    .join(', ')
}

/** `$document_id::uuid[], $event::text[], ...`: an array for each column of several rows. */
export function listArrays(columns: InsertColumns, prefix = ''): string {
  const names = namePlaces(columns, prefix)
  return columns.map(([, type], index) => `$${names[index]}::${type}[]`).join(', ')
}

/** The values of `listPlaces`, given those of a row in the order of its columns. */
export function nameValues(columns: InsertColumns, row: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(namePlaces(columns).map((name, index) => [name, row[index]]))
}

/** The values of `listArrays`: those of rows, turned into one array for each column. */
export function transpose(
  columns: InsertColumns,
  rows: readonly (readonly unknown[])[],
  prefix = '',
): Record<string, unknown[]> {
  return Object.fromEntries(namePlaces(columns, prefix).map((name, index) => [name, rows.map((row) => row[index])]))
}

/** A fragment as a statement of its own. */
export function compileFragment<Row>({ text, values }: Fragment): CompiledQuery<Row> {
  return CompiledQuery.raw(text, [...values])
}

/** Joins parts into one statement: `write` gets the text of each, its numbers moved behind those of the parts before it. */
type Join = <Row>(parts: readonly Fragment[], write: (texts: readonly string[]) => string) => CompiledQuery<Row>

/** Builds the join of parts at one place of the program: the same parts make the same text, composed once. */
export function buildJoin(): Join {
  const texts = new Map<string, string>()
  return (parts, write) => {
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
}
