import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely'
import { type FieldError, firstValues } from '../problem/field-error.ts'
import { buildFieldProblem, Problem } from '../problem/problem.ts'
import type { PermissionScope } from '../shape/caller.ts'
import { formatValue, type ListFieldType, type ListValue, parseValue, splitValues, VALUE_RULES } from './value.ts'

/** The fields of a list route that may be filtered and, where `sortable`, sorted. Only columns that are never null are sortable. */
export type ListFields = Readonly<Record<string, ListField>>

interface ListField {
  type: ListFieldType
  sortable?: boolean
  column?: string
  /** Of text: compared byte by byte, as merged lists need: the collations of databases differ. */
  collation?: 'C'
  /** Of text. Default: `in-range`. */
  like?: LikeRule
  /** The condition of a filter that compares no column, among the rows of `own` or all; takes `eq` and `in`. */
  condition?: (filter: ListFilter, own: OwnAccount | undefined) => RawBuilder<SqlBool>
  /** Of text with an equality of its own: whether the column equals one of these values, for `eq`, `ne`, `in`, `nin`. */
  equals?: TextEquality
}

type TextEquality = (column: RawBuilder<unknown>, values: readonly string[]) => RawBuilder<SqlBool>

/** The account whose rows a part of a list reads, in a statement that reads those of several accounts. */
export type OwnAccount = Expression<string>

/**
 * Bounds of a `like` (docs/contract/api.md#like):
 * - `indexed`: an index finds parts of the text
 * - `few-rows`: the list is short: fixed by a release, rows of one user or account, or limited globally
 * - `of-accounts`: a caller limited to some accounts searches theirs; one with access to all rows needs a time range
 * - `in-range`: it needs a filter that bounds `created_at` from below
 */
export type LikeRule = 'indexed' | 'few-rows' | 'of-accounts' | 'in-range'

const LIST_OPERATORS = ['eq', 'ne', 'in', 'nin', 'lt', 'lte', 'gt', 'gte', 'between', 'like', 'null'] as const
export type ListOperator = (typeof LIST_OPERATORS)[number]

/** A parsed `filters=<field>|<operator>|<values>`. */
export interface ListFilter {
  field: string
  operator: ListOperator
  values: ListValue[]
}

/** Bounds the cost of one statement. */
export const FILTERS_LIMIT = 20
const FILTER_VALUES_LIMIT = 500

/** Characters of a `like` at least: shorter texts are in most rows. */
const LIKE_CHARACTERS = 3

const ORDERED: readonly ListOperator[] = ['lt', 'lte', 'gt', 'gte', 'between']

/** The operators of a field of `type`: no order for booleans and ids, `like` for text only. */
export function listOperators(type: ListFieldType): ListOperator[] {
  const isOrdered = type === 'text' || type === 'integer' || type === 'timestamp'
  return LIST_OPERATORS.filter((operator) => {
    if (operator === 'like') return type === 'text'
    return isOrdered || !ORDERED.includes(operator)
  })
}

/** The operators that a field of a list takes. */
export function operatorsOf({ type, condition }: ListField): ListOperator[] {
  return condition ? ['eq', 'in'] : listOperators(type)
}

/** Parses filters of a caller who reaches `scope` (docs/contract/api.md#filters). Throws 422 with every error. */
export function parseFilters(
  texts: readonly string[],
  fields: ListFields,
  scope: PermissionScope = 'all',
): ListFilter[] {
  if (texts.length > FILTERS_LIMIT)
    throw buildFieldProblem({
      path: 'filters',
      code: 'too_many',
      message: `at most ${FILTERS_LIMIT} filters are allowed`,
      params: { limit: FILTERS_LIMIT },
    })
  const parsed = texts.map((text, index) => parseFilter(text, fields, `filters.${index}`))
  const errors = parsed.filter((item) => 'message' in item)
  if (errors.length > 0) throw buildListProblem(errors)
  const filters = parsed.filter((item) => 'operator' in item)
  checkRanges(filters, fields, scope)
  return filters
}

const LOWER_BOUNDS: readonly ListOperator[] = ['eq', 'in', 'gt', 'gte', 'between']

/** Refuses a `like` that nothing bounds (docs/contract/api.md#like). */
function checkRanges(filters: readonly ListFilter[], fields: ListFields, scope: PermissionScope): void {
  if (filters.some(({ field, operator }) => field === 'created_at' && LOWER_BOUNDS.includes(operator))) return
  const errors = filters.flatMap(({ field, operator }, index) => {
    if (operator !== 'like' || isBounded(fields[field]?.like, scope)) return []
    const message =
      `takes like on ${field} only together with a range of time: ` +
      'add filters=created_at|gte|<instant>, or between, or filter by eq'
    return [{ path: `filters.${index}`, code: 'range' as const, message }]
  })
  if (errors.length > 0) throw buildListProblem(errors)
}

/** Whether a `like` needs no time range. Pure. */
function isBounded(rule: LikeRule = 'in-range', scope: PermissionScope): boolean {
  if (rule === 'of-accounts') return scope !== 'all'
  return rule !== 'in-range'
}

/** Whether a trigram index finds the rows of a filter, also for a whole text. */
export function isSearch(filters: readonly ListFilter[], fields: ListFields): boolean {
  return filters.some(
    ({ field, operator }) => (operator === 'like' || operator === 'eq') && fields[field]?.like === 'indexed',
  )
}

/** A 422 about list parameters. */
export function buildListProblem(errors: FieldError[]): Problem {
  const [first] = errors
  return new Problem('validation_failed', `${first?.path}: ${first?.message}.`, { errors })
}

function parseFilter(text: string, fields: ListFields, path: string): ListFilter | FieldError {
  // Only the first two bars are separators; a value may contain bars.
  const match = /^([^|]*)\|([^|]*)\|([\s\S]*)$/.exec(text)
  if (!match) return { path, code: 'form', message: 'must have the form <field>|<operator>|<values>' }
  const [, field = '', operatorText = '', valuesText = ''] = match
  const declared = Object.hasOwn(fields, field) ? fields[field] : undefined
  if (!declared) {
    const message = `names no field to filter by; allowed are ${Object.keys(fields).join(', ')}`
    return { path, code: 'unknown_field', message, params: { values: firstValues(Object.keys(fields)) } }
  }
  const allowed = operatorsOf(declared)
  const operator = allowed.find((operator) => operator === operatorText)
  if (!operator) {
    const message = `has no operator that ${field} takes; allowed are ${allowed.join(', ')}`
    return { path, code: 'unknown_operator', message, params: { values: firstValues(allowed) } }
  }
  const texts = splitValues(valuesText)
  const fault = findCountFault(operator, texts)
  if (fault) return { path, code: 'values', message: fault }
  const type = operator === 'null' ? 'boolean' : declared.type
  const values: ListValue[] = []
  for (const text of texts) {
    const value = parseValue(type, text)
    if (value === undefined)
      return { path, code: type, message: `has a value for ${field} that must be ${VALUE_RULES[type]}` }
    values.push(value)
  }
  return { field, operator, values }
}

function findCountFault(operator: ListOperator, texts: readonly string[]): string | undefined {
  switch (operator) {
    case 'in':
    case 'nin':
      return texts.length > FILTER_VALUES_LIMIT ? `takes at most ${FILTER_VALUES_LIMIT} values` : undefined
    case 'between':
      return texts.length === 2 ? undefined : 'takes exactly two values with between: <low>,<high>, both included'
    case 'like':
      if (texts.length === 1 && [...(texts[0] ?? '')].length < LIKE_CHARACTERS)
        return `needs at least ${LIKE_CHARACTERS} characters with like; shorter ones are in most rows`
  }
  return texts.length === 1 ? undefined : `takes one value with ${operator}; write \\, for a comma inside it`
}

const EQUALITIES: readonly ListOperator[] = ['eq', 'ne', 'in', 'nin']

const COMPARISONS = { lt: '<', lte: '<=', gt: '>', gte: '>=' } as const

/**
 * The condition of one filter. `column` comes from the route's declaration, never from the request. Values are
 * parameters, each cast to a type wide enough for every parsed value, so that no value makes the statement fail.
 * A row without a value counts as "not equal" to any value (`ne`, `nin`).
 */
export function buildCondition(
  filter: ListFilter,
  column: RawBuilder<unknown>,
  type: ListFieldType,
): RawBuilder<SqlBool> {
  const [first, second] = filter.values as [ListValue, ListValue?]
  switch (filter.operator) {
    case 'eq':
      return sql`${column} = ${bindValue(type, first)}`
    case 'ne':
      return sql`${column} is distinct from ${bindValue(type, first)}`
    case 'in':
      return sql`${column} = any(${bindValues(type, filter.values)})`
    case 'nin':
      return sql`(${column} is null or ${column} <> all(${bindValues(type, filter.values)}))`
    case 'between':
      return sql`${column} between ${bindValue(type, first)} and ${bindValue(type, second ?? first)}`
    case 'like':
      return sql`${column} ilike ${`%${String(first).replace(/[\\%_]/g, '\\$&')}%`} escape '\\'`
    case 'null':
      return first === true ? sql`${column} is null` : sql`${column} is not null`
    default:
      return sql`${column} ${sql.raw(COMPARISONS[filter.operator])} ${bindValue(type, first)}`
  }
}

/** The condition of a filter on a field with an equality of its own; undefined for another field or operator. */
export function buildEquality(
  { operator, values }: ListFilter,
  column: RawBuilder<unknown>,
  equals: TextEquality | undefined,
): RawBuilder<SqlBool> | undefined {
  if (!equals || !EQUALITIES.includes(operator)) return undefined
  const isEqual = equals(column, values.map(formatValue))
  return operator === 'eq' || operator === 'in' ? isEqual : sql`(${isEqual}) is not true`
}

// bigint for every integer: it compares with int4 columns, also through an index, and no parsed value overflows.
const SQL_TYPES = {
  text: 'text',
  uuid: 'uuid',
  integer: 'bigint',
  boolean: 'boolean',
  timestamp: 'timestamptz',
} as const

/** `value` as a parameter of the SQL type of its field. */
export function bindValue(type: ListFieldType, value: ListValue): RawBuilder<unknown> {
  return sql`${formatValue(value)}::${sql.raw(SQL_TYPES[type])}`
}

function bindValues(type: ListFieldType, values: readonly ListValue[]): RawBuilder<unknown> {
  return sql`${values.map(formatValue)}::${sql.raw(SQL_TYPES[type])}[]`
}
