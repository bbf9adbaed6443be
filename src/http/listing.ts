import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { DB } from '../postgres/tables.generated.ts'
import { type FieldError, Problem } from './problem.ts'

/** How the values of a list field are read and compared. */
export type ListFieldType = 'text' | 'uuid' | 'integer' | 'boolean' | 'timestamp'

/** The fields of a list route that may be filtered and, where `sortable`, sorted. Only columns that are never null are sortable. */
export type ListFields = Readonly<Record<string, { type: ListFieldType; sortable?: boolean; column?: string }>>

export const LIST_OPERATORS = ['eq', 'ne', 'in', 'nin', 'lt', 'lte', 'gt', 'gte', 'between', 'like', 'null'] as const
export type ListOperator = (typeof LIST_OPERATORS)[number]

/** `filters=<field>|<operator>|<values>` once read. */
export interface ListFilter {
  field: string
  operator: ListOperator
  values: (string | number | boolean | Date)[]
}

/** Filters, sort and page of one list request (D5). */
export interface Listing {
  filters: ListFilter[]
  sort: { field: string; descending: boolean }
  pageSize: number
  after: { value: string | number | boolean; id: string } | undefined
  count: boolean
}
