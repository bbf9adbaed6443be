import { type RawBuilder, type SelectQueryBuilder, type SqlBool, sql } from 'kysely'
import { isUuid } from '../../base/id.ts'
import { firstValues } from '../problem/field-error.ts'
import type { PermissionScope } from '../shape/caller.ts'
import { type TSchema, Type } from '../shape/schema-type.ts'
import { decodeCursor, encodeCursor, type ListPosition } from './cursor.ts'
import {
  bindValue,
  buildCondition,
  buildEquality,
  buildListProblem,
  FILTERS_LIMIT,
  type ListFields,
  type ListFilter,
  type OwnAccount,
  operatorsOf,
  parseFilters,
} from './filter.ts'
import type { ListFieldType, ListValue } from './value.ts'

export type { ListFields, ListFilter } from './filter.ts'
export { parseFilters } from './filter.ts'

const PAGE_SIZE_DEFAULT = 50

/** Rows that a total counts at most (docs/contract/api.md#totals): what a count reads does not grow with the list. */
export const COUNT_LIMIT = 10_000
const PAGE_SIZE_LIMIT = 200

/** Filters, sort and page of one list request (docs/contract/api.md#filters). */
export interface Listing {
  filters: ListFilter[]
  sort: { field: string; descending: boolean }
  pageSize: number
  /** The last row of the previous page. */
  after: ListPosition | undefined
  count: boolean
}

/** The source of a list: the table or alias of its columns, and the unique column that breaks ties. */
export interface ListSource {
  /** Qualifies columns where more than one table is joined. A field's `column` with a dot is already qualified. */
  table?: string
  /** The unique column that breaks ties. Default `document_id`; any other one is compared as text. */
  idColumn?: string
  /** The account whose rows the query keeps; undefined where it keeps those of all accounts. */
  own?: OwnAccount | undefined
}

/** The fields of a list of rows: `own`, and those that every row has. */
export function rowFields<const Own extends ListFields>(own: Own) {
  return {
    document_id: { type: 'uuid' },
    ...own,
    created_at: { type: 'timestamp', sortable: true },
    updated_at: { type: 'timestamp', sortable: true },
  } as const
}

/** The columns that `applyListing` adds to a query: the position of each row. */
export interface ListedRow {
  listing_sort: ListValue
  listing_id: string
}

const PARAMETERS = ['filters', 'sort', 'page_size', 'cursor', 'count']

/** Whether a page may read more than it returns: each list has an index in the order of `created_at`. */
export function isExpensive({ filters, sort, count }: Listing): boolean {
  return count || filters.length > 0 || sort.field !== 'created_at'
}

/** `-created_at` (docs/contract/api.md#filters); for a list without it, the first field that can be sorted. */
function findDefaultSort(fields: ListFields): string {
  if (fields.created_at?.sortable) return '-created_at'
  const first = Object.keys(fields).find((field) => fields[field]?.sortable)
  if (!first) throw new Error('a list needs a sortable field')
  return first
}

/**
 * Parses the list parameters of a query string, as text or as coerced by the validator (docs/contract/api.md#filters), for a
 * caller who reaches `scope`. Ignores other members, which belong to the route. Throws 422 `validation_failed` with the
 * allowed values.
 */
export function parseListing(
  query: Record<string, unknown>,
  fields: ListFields,
  scope: PermissionScope = 'all',
): Listing {
  const filters = parseFilters(readTexts('filters', query.filters), fields, scope)
  const sortText = readText('sort', query.sort) ?? findDefaultSort(fields)
  const descending = sortText.startsWith('-')
  const field = descending ? sortText.slice(1) : sortText
  const type = Object.hasOwn(fields, field) && fields[field]?.sortable ? fields[field].type : undefined
  if (!type) {
    const sorts = listSorts(fields)
    const message = `cannot be sorted by; allowed are ${sorts.join(', ')}`
    throw buildListProblem([{ path: 'sort', code: 'unknown_field', message, params: { values: firstValues(sorts) } }])
  }
  const cursor = readText('cursor', query.cursor)
  const after = cursor === undefined ? undefined : decodeCursor(cursor, sortText, type)
  if (cursor !== undefined && !after) throw buildCursorProblem()
  return {
    filters,
    sort: { field, descending },
    pageSize: readPageSize(query.page_size),
    after,
    count: readCount(query.count),
  }
}

function buildCursorProblem() {
  const message = 'is not a next_cursor of a list with this sort; start again without it'
  return buildListProblem([{ path: 'cursor', code: 'cursor', message }])
}

function readTexts(path: string, given: unknown): string[] {
  if (given === undefined) return []
  const texts = [given].flat()
  if (texts.every((text) => typeof text === 'string')) return texts
  throw buildListProblem([{ path, code: 'type', message: 'must be text', params: { types: ['string'] } }])
}

function readText(path: string, given: unknown): string | undefined {
  const texts = readTexts(path, given)
  if (texts.length <= 1) return texts[0]
  throw buildListProblem([{ path, code: 'repeated', message: 'is given more than once' }])
}

function readPageSize(given: unknown): number {
  const text = readText('page_size', typeof given === 'number' ? String(given) : given)
  if (text === undefined) return PAGE_SIZE_DEFAULT
  const size = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (size >= 1 && size <= PAGE_SIZE_LIMIT) return size
  const params = { least: 1, most: PAGE_SIZE_LIMIT }
  throw buildListProblem([{ path: 'page_size', code: 'range', message: `must be 1 to ${PAGE_SIZE_LIMIT}`, params }])
}

function readCount(given: unknown): boolean {
  const text = readText('count', typeof given === 'boolean' ? String(given) : given)
  if (text === undefined || text === 'false') return false
  if (text === 'true') return true
  throw buildListProblem([{ path: 'count', code: 'boolean', message: 'must be true or false' }])
}

function listSorts(fields: ListFields): string[] {
  return Object.keys(fields)
    .filter((field) => fields[field]?.sortable)
    .flatMap((field) => [field, `-${field}`])
}

/** The schema of a list's query (docs/contract/api.md#filters), with `extra`. `parseListing` applies the exact rules. */
export function buildListQuery(fields: ListFields, extra?: TSchema): TSchema {
  const lines = Object.entries(fields).map(([name, field]) => {
    const { type, like = 'in-range' } = field
    const note = {
      indexed: '',
      'few-rows': '',
      'of-accounts': ' (of some accounts, or with a range)',
      'in-range': ' (with a range)',
    }
    return `- \`${name}\` (${type}): ${operatorsOf(field).join(', ').replace('like', `like${note[like]}`)}`
  })
  const filters = Type.Array(Type.String(), {
    maxItems: FILTERS_LIMIT,
    description: [
      'Each `<field>|<operator>|<values>`; a row has to match all of them. Values are split at commas; `\\,` is a literal',
      'comma, `\\\\` a literal backslash. `between` takes two values and includes both, `like` matches a part of a text in',
      'any case and needs three characters, for some fields also a filter that bounds `created_at` from below (a range).',
      '`null` takes `true` or `false`. Rows without a value match `ne` and `nin`. Fields and their operators:',
      `\n\n${lines.join('\n')}`,
    ].join(' '),
  })
  const own = (extra as { properties?: Record<string, TSchema> } | undefined)?.properties ?? {}
  const clash = PARAMETERS.find((name) => Object.hasOwn(own, name))
  if (clash) throw new Error(`the query of a list already has ${clash}`)
  return Type.Object(
    {
      filters: Type.Optional(filters),
      sort: Type.Optional(
        Type.String({
          enum: listSorts(fields),
          default: findDefaultSort(fields),
          description: 'A field; with `-`, descending.',
        }),
      ),
      page_size: Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_SIZE_LIMIT, default: PAGE_SIZE_DEFAULT })),
      cursor: Type.Optional(
        Type.String({ description: 'The `next_cursor` of the page before. Opaque; bound to its sort.' }),
      ),
      count: Type.Optional(
        Type.Boolean({ default: false, description: 'Whether `pagination.total` is counted too, up to 10,000.' }),
      ),
      ...own,
    },
    { additionalProperties: false },
  )
}

/** The column of a field, as its values are compared; parts of a text are found by an index in its own collation. */
function buildColumn(field: string, fields: ListFields, source: ListSource, operator?: string): RawBuilder<unknown> {
  const { column = field, collation } = fields[field] ?? {}
  const named = sql.ref(source.table && !column.includes('.') ? `${source.table}.${column}` : column)
  return collation && operator !== 'like' ? sql`${named} collate "C"` : named
}

function buildIdColumn({ table, idColumn = 'document_id' }: ListSource) {
  return sql.ref(table ? `${table}.${idColumn}` : idColumn)
}

/** Adds the filters of a listing to a query. Columns come from `fields` alone, values are parameters. */
function applyFilters<Tables, Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  listing: Pick<Listing, 'filters'>,
  fields: ListFields,
  source: ListSource = {},
): SelectQueryBuilder<Tables, Table, Row> {
  return listing.filters.reduce((filtered, filter) => {
    const { condition, equals } = fields[filter.field] ?? {}
    if (condition) return filtered.where(condition(filter, source.own))
    const column = buildColumn(filter.field, fields, source, filter.operator)
    const equality = buildEquality(filter, column, equals)
    return filtered.where(equality ?? buildCondition(filter, column, fieldType(filter.field, fields)))
  }, query)
}

function fieldType(field: string, fields: ListFields): ListFieldType {
  const declared = fields[field]
  if (!declared) throw new Error('the listing was parsed for other fields')
  return declared.type
}

/**
 * Adds filters, order and page of a listing to a query without an order. Pages are found by position (`(sort, id)` after
 * the last row), so the cost of a page does not depend on its number, and concurrent inserts do not shift pages. Selects
 * one row more than the page, from which `buildPage` derives whether another page follows.
 */
export function applyListing<Tables, Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  listing: Listing,
  fields: ListFields,
  source: ListSource = {},
): SelectQueryBuilder<Tables, Table, Row & ListedRow> {
  const { sort, after, pageSize } = listing
  const direction = sort.descending ? 'desc' : 'asc'
  const sortColumn = buildColumn(sort.field, fields, source)
  const idColumn = buildIdColumn(source)
  let page = applyFilters(query, listing, fields, source)
  if (after) {
    const idType = (source.idColumn ?? 'document_id') === 'document_id' ? 'uuid' : 'text'
    if (idType === 'uuid' && !isUuid(after.id)) throw buildCursorProblem()
    const value = bindValue(fieldType(sort.field, fields), after.value)
    const beyond = sql.raw(sort.descending ? '<' : '>')
    page = page.where(sql<SqlBool>`(${sortColumn}, ${idColumn}) ${beyond} (${value}, ${bindValue(idType, after.id)})`)
  }
  return page
    .select([sortColumn.as('listing_sort'), idColumn.as('listing_id')])
    .orderBy(sortColumn, direction)
    .orderBy(idColumn, direction)
    .limit(pageSize + 1) as SelectQueryBuilder<Tables, Table, Row & ListedRow>
}

/** One page of a list, in the form of an `Outcome`. */
export interface Page<Row> {
  rows: Row[]
  pagination: { page_size: number; next_cursor: string | null; total?: number; is_total_exact?: boolean }
}

/** Builds a page from the rows of an `applyListing` query: at most `page_size`, each mapped by `toRow`. */
export function buildPage<Found, Row>(
  found: readonly (Found & ListedRow)[],
  listing: Listing,
  toRow: (found: Found) => Row,
): Page<Row> {
  const shown = found.slice(0, listing.pageSize)
  const last = found.length > listing.pageSize ? shown.at(-1) : undefined
  const sort = `${listing.sort.descending ? '-' : ''}${listing.sort.field}`
  return {
    rows: shown.map(toRow),
    pagination: {
      page_size: listing.pageSize,
      next_cursor: last ? encodeCursor(sort, { value: last.listing_sort, id: last.listing_id }) : null,
    },
  }
}

/** A query with one row for each row of a list, up to `limit`, which is what a bounded total counts. */
export function buildCount<Tables, Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  listing: Pick<Listing, 'filters'>,
  fields: ListFields,
  source: ListSource = {},
): SelectQueryBuilder<Tables, Table, object> {
  return applyFilters(query.clearSelect(), listing, fields, source)
    .select(sql.lit(1).as('one'))
    .limit(COUNT_LIMIT + 1)
}
