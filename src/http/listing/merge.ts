import type { RawBuilder, SqlBool } from 'kysely'
import type { AccountId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { PermissionScope } from '../shape/caller.ts'
import type { ListFilter } from './filter.ts'
import { buildPage, COUNT_LIMIT, type ListedRow, type ListFields, type Listing } from './listing.ts'
import { isNotTrue } from './page.store.ts'
import { countListed, findListed, type ListTotal, type PageOptions, type RowList } from './page.ts'
import type { ListValue } from './value.ts'

/** A database that a merged list reads. */
export interface MergeSource {
  db: Database
  /** The accounts of the caller that are here, or all. */
  scope: PermissionScope
  /** Accounts whose rows here do not count: they move, and are in the other database of their move. */
  elsewhere: readonly AccountId[]
}

/** The databases that the list of a request is merged from (docs/contract/api.md#merged-lists). */
export interface MergedReads {
  /** Asks each of them at the same time, while no account moves. Throws 503 for a cell that does not answer. */
  ask<Result>(read: (source: MergeSource) => Promise<Result>): Promise<Result[]>
  /** The same of the databases of these accounts, and of home, which records events about accounts everywhere. */
  among(accounts: readonly AccountId[]): MergedReads
}

/** A list in each of several databases. */
export interface MergedList<Found> {
  rows: (source: MergeSource) => RowList<Found>
  /** The rows of these accounts here. Default: none, for rows that never change: those of two databases are one by their id. */
  isOf?: IsOf | undefined
}

/** A condition on the rows of a list: they belong to one of these accounts. */
export type IsOf = (accounts: readonly AccountId[]) => RawBuilder<SqlBool>

/** The name of the field by which rows are left out; no request can have it. */
const ELSEWHERE = ' elsewhere'

interface Wanted {
  listing: Listing
  fields: ListFields
}

function leaveOut(isOf: IsOf | undefined, elsewhere: readonly AccountId[], given: Wanted): Wanted {
  if (!isOf || elsewhere.length === 0) return given
  const { listing, fields } = given
  const filter: ListFilter = { field: ELSEWHERE, operator: 'nin', values: [...elsewhere] }
  const isHere = isNotTrue(isOf(elsewhere))
  return {
    listing: { ...listing, filters: [...listing.filters, filter] },
    fields: { ...fields, [ELSEWHERE]: { type: 'uuid', condition: () => isHere } },
  }
}

/** Orders values as PostgreSQL does; texts as the collation `C`, by their bytes (`ListField.collation`). */
function compareValues(a: ListValue, b: ListValue): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b))
  return Number(a) - Number(b)
}

/** The first `limit` rows of all pages in the order of the list, each id once. Of equal ids the one of the first page stays. Pure. */
export function mergeRows<Row extends ListedRow>(
  pages: readonly (readonly Row[])[],
  { descending }: Pick<Listing['sort'], 'descending'>,
  limit: number,
): Row[] {
  const rows = new Map<string, Row>()
  for (const row of pages.flat()) if (!rows.has(row.listing_id)) rows.set(row.listing_id, row)
  const sign = descending ? -1 : 1
  const compare = (a: Row, b: Row) =>
    sign * (compareValues(a.listing_sort, b.listing_sort) || compareValues(a.listing_id, b.listing_id))
  return [...rows.values()].sort(compare).slice(0, limit)
}

/** The sum of totals, exact up to `COUNT_LIMIT`. Pure. */
export function addTotals(totals: readonly ListTotal[]): ListTotal {
  const sum = totals.reduce((before, { total }) => before + total, 0)
  return {
    total: Math.min(sum, COUNT_LIMIT),
    is_total_exact: sum <= COUNT_LIMIT && totals.every((each) => each.is_total_exact),
  }
}

/** The rows of a page and one more of all databases: `findListed` in each of them. */
export async function findMerged<Found>(
  reads: MergedReads,
  list: MergedList<Found>,
  given: Wanted,
): Promise<(Found & ListedRow)[]> {
  const pages = await reads.ask((source) =>
    findListed(source.db, { ...list.rows(source), ...leaveOut(list.isOf, source.elsewhere, given) }),
  )
  return mergeRows(pages, given.listing.sort, given.listing.pageSize + 1)
}

/** One page of a list of several databases, with its total when the request asks for it: `readPage` over all of them. */
export async function readMergedPage<Found, Row>(
  reads: MergedReads,
  list: MergedList<Found>,
  { toRow, ...given }: PageOptions<Found, Row>,
) {
  const { listing } = given
  const answers = await reads.ask(async (source) => {
    const part = { ...list.rows(source), ...leaveOut(list.isOf, source.elsewhere, given) }
    const found = await findListed(source.db, part)
    return { found, total: listing.count ? await countListed(source.db, part) : undefined }
  })
  const pages = answers.map(({ found }) => found)
  const page = buildPage(mergeRows(pages, listing.sort, listing.pageSize + 1), listing, toRow)
  const total = listing.count ? addTotals(answers.flatMap((answer) => answer.total ?? [])) : {}
  return { data: page.rows, pagination: { ...page.pagination, ...total } }
}
