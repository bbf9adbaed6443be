import type { Selectable, SelectQueryBuilder } from 'kysely'
import type { DB, Narrowed } from './tables.generated.ts'

/** The members whose names are not those of their columns: `{ user: 'userId' }`. */
type Names<Column extends string> = { readonly [Name in Column]?: string }

type CamelCase<Text extends string> = Text extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<CamelCase<Rest>>}`
  : Text

/** The member of a record for a column: `document_id` is `id`, `is_global` is `isGlobal`. */
export type MemberOf<Column extends string, Given> = Column extends keyof Given
  ? Given[Column] & string
  : Column extends 'document_id'
    ? 'id'
    : CamelCase<Column>

type Columns<Table extends keyof DB> = keyof Selectable<DB[Table]> & string

/** The type of a column, narrowed by the keys and checks of the schema. */
type ValueOf<Table extends keyof DB, Column extends Columns<Table>> = Table extends keyof Narrowed
  ? Column extends keyof Narrowed[Table]
    ? Narrowed[Table][Column] | Extract<Selectable<DB[Table]>[Column], null>
    : Selectable<DB[Table]>[Column]
  : Selectable<DB[Table]>[Column]

/** The columns that make a record, from which its type and the lists of its statements follow. */
export interface RecordColumns<Column extends string, Given, Found> {
  readonly columns: readonly Column[]
  /** The columns as SQL, for parts of `with`: `w.document_id, w.is_global`. */
  select(alias?: string): string
  /** The members as SQL, for the result of a statement: `w.document_id as id, w.is_global as "isGlobal"`. */
  members(alias?: string): string
  memberOf(column: Column): string
  /** The record with types that the schema does not define: words without a check, documents, ids without a key. */
  typed<Refined extends Partial<Record<keyof Found, unknown>>>(): RecordColumns<
    Column,
    Given,
    { [Member in keyof Found]: Member extends keyof Refined ? Refined[Member] : Found[Member] }
  >
  /** Never set: carries types. */
  readonly types?: { given: Given; found: Found }
}

/** The record that a statement returns for `members()`. */
export type RecordOf<Declared> = Declared extends RecordColumns<string, infer _Given, infer Found> ? Found : never

/** Declares the record of a table by its columns, once. `given` has the members with other names. */
export function defineRecord<
  const Table extends keyof DB,
  const Column extends Columns<Table>,
  const Given extends Names<Column> = Record<never, string>,
>(
  _table: Table,
  columns: readonly Column[],
  given?: Given,
): RecordColumns<Column, Given, { [Name in Column as MemberOf<Name, Given>]: ValueOf<Table, Name> }> {
  const names: Readonly<Record<string, string | undefined>> = given ?? {}
  const memberOf = (column: string) => names[column] ?? (column === 'document_id' ? 'id' : toCamelCase(column))
  const list = (alias: string | undefined, write: (column: string) => string) =>
    columns.map((column) => (alias === undefined ? '' : `${alias}.`) + write(column)).join(', ')
  const declared = {
    columns,
    memberOf,
    select: (alias?: string) => list(alias, quote),
    members: (alias?: string) =>
      list(alias, (column) => {
        const member = memberOf(column)
        return member === column ? quote(column) : `${quote(column)} as ${quote(member)}`
      }),
    typed: () => declared as never,
  }
  return declared
}

const toCamelCase = (column: string) => column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

/** `user` is a word of SQL, and a name with capitals is one in quotes only. */
const quote = (name: string) => (name === 'user' || /[A-Z]/.test(name) ? `"${name}"` : name)

/** Adds the members of a record to a query of the builder, which has its table as `alias` or alone. */
export function selectRecord<Tables, Source extends keyof Tables, Selected, Column extends string, Given, Found>(
  query: SelectQueryBuilder<Tables, Source, Selected>,
  record: RecordColumns<Column, Given, Found>,
  alias?: string,
): SelectQueryBuilder<Tables, Source, Selected & Found> {
  const prefix = alias === undefined ? '' : `${alias}.`
  const selected = record.columns.map((column) => `${prefix}${column} as ${record.memberOf(column)}`)
  return query.select(selected as never) as never
}
