import type { Expression, SelectQueryBuilder } from 'kysely'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import type { PermissionScope } from '../shape/caller.ts'
import { isSearch, type OwnAccount } from './filter.ts'
import {
  applyListing,
  buildCount,
  buildPage,
  COUNT_LIMIT,
  type ListedRow,
  type ListFields,
  type Listing,
  type ListSource,
} from './listing.ts'
import { allowBitmaps, countUpTo, OWN_ACCOUNT, selectPage } from './page.store.ts'

export type { OwnAccount } from './filter.ts'

/** One query of a list. The rows of a list may come from several tables, each read in the order of the list. */
export interface ListPart<Found> {
  /** Reads the page where this part is all of the list. */
  read: (db: Database, listing: Listing, fields: ListFields) => Promise<(Found & ListedRow)[]>
  page: (listing: Listing, fields: ListFields) => Expression<Found & ListedRow>
  /** One row for each row of the list, up to `COUNT_LIMIT` and one more. */
  counted: (listing: Listing, fields: ListFields) => Expression<unknown>
}

/** A part of a list: `query` selects its columns; its conditions (not deleted, own account) apply to page and total. */
export function buildPart<Tables, Table extends keyof Tables, Found>(
  query: SelectQueryBuilder<Tables, Table, Found>,
  source?: ListSource,
): ListPart<Found> {
  return {
    read: async (db, listing, fields) => {
      const { rows } = await db.executeQuery(applyListing(query, listing, fields, source).compile())
      return rows as (Found & ListedRow)[]
    },
    page: (listing, fields) => applyListing(query, listing, fields, source),
    counted: (listing, fields) => buildCount(query, listing, fields, source),
  }
}

/** The parts of a list: for all accounts, or for the account `own`. */
export type BuildParts<Found> = (own: OwnAccount | undefined) => readonly ListPart<Found>[]

/** A page of a list, and the form of its rows. */
export interface PageOptions<Found, Row> {
  listing: Listing
  fields: ListFields
  toRow: (row: Found) => Row
}

/** A list: the rows of all accounts, or those of `scope`. */
export type RowList<Found> = Pick<ScopedList<Found>, 'scope' | 'parts'>

/** The list of the rows that `query` selects: it has their columns and their conditions (not deleted, own rows). */
export function buildWholeList<Tables, Table extends keyof Tables, Found>(
  query: SelectQueryBuilder<Tables, Table, Found>,
  source?: ListSource,
): RowList<Found> {
  return { scope: 'all', parts: () => [buildPart(query, source)] }
}

/** The list of the rows that `select` selects of each account of a scope, or of all. */
export function buildList<Tables, Table extends keyof Tables, Found>(
  scope: PermissionScope,
  select: (own: OwnAccount | undefined) => SelectQueryBuilder<Tables, Table, Found>,
): RowList<Found> {
  return { scope, parts: (own) => [buildPart(select(own))] }
}

interface ScopedList<Found> {
  scope: PermissionScope
  parts: BuildParts<Found>
  listing: Listing
  fields: ListFields
}

/** Reads one page of a list: its rows by the filters, the sort and the cursor of `listing`, and their total when the request asks for it. */
export async function readPage<Found, Row>(
  db: Database,
  list: RowList<Found>,
  { listing, fields, toRow }: PageOptions<Found, Row>,
) {
  const found = await findListed(db, { ...list, listing, fields })
  const page = buildPage(found, listing, toRow)
  const total = listing.count ? await countListed(db, { ...list, listing, fields }) : {}
  return { data: page.rows, pagination: { ...page.pagination, ...total } }
}

/**
 * The rows of a page and one more. Of some accounts, each account is read by itself, in the order of the list and to the limit
 * of the page: what it costs does not follow from the rows of others, nor from what a plan expects of an average account.
 */
export async function findListed<Found>(db: Database, list: ScopedList<Found>): Promise<(Found & ListedRow)[]> {
  return readSearching(db, list, (reads) => findPage(reads, list))
}

/**
 * Reads a list with a trigram search, which needs bitmap scans: other lists are read without them, in the order of an
 * index. Where PostgreSQL expects many rows, it still reads in the order of the list.
 */
function readSearching<Found, Result>(
  db: Database,
  { scope, listing, fields }: ScopedList<Found>,
  read: (db: Database) => Promise<Result>,
): Promise<Result> {
  if (scope !== 'all' || !isSearch(listing.filters, fields)) return read(db)
  return inTransaction(db, async (tx) => {
    await allowBitmaps(tx)
    return read(tx)
  })
}

async function findPage<Found>(
  db: Database,
  { scope, parts: buildParts, listing, fields }: ScopedList<Found>,
): Promise<(Found & ListedRow)[]> {
  const parts = buildParts(scope === 'all' ? undefined : OWN_ACCOUNT)
  const [only, second] = parts
  if (scope === 'all' && only && !second) return only.read(db, listing, fields)
  const pages = parts.map((part) => part.page(listing, fields))
  return selectPage<Found & ListedRow>(db, { scope, parts: pages }, listing)
}

/** The number of rows of a list, as `pagination` shows it. */
export interface ListTotal {
  total: number
  /** Whether the count is exact; otherwise there are more. */
  is_total_exact: boolean
}

/** The total of a list, exact up to `COUNT_LIMIT` (docs/contract/api.md#totals). Its sort and its page do not matter. */
export async function countListed<Found>(db: Database, list: ScopedList<Found>): Promise<ListTotal> {
  const { scope, parts: buildParts, listing, fields } = list
  const parts = buildParts(scope === 'all' ? undefined : OWN_ACCOUNT).map((part) => part.counted(listing, fields))
  const counts = await readSearching(db, list, (reads) => countUpTo(reads, { scope, parts }, COUNT_LIMIT + 1))
  return { total: Math.min(counts, COUNT_LIMIT), is_total_exact: counts <= COUNT_LIMIT }
}
