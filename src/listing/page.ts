import type { SelectQueryBuilder } from 'kysely'
import { applyListing, buildPage, countRows, type ListFields, type Listing, type ListSource } from './listing.ts'

/**
 * Reads one page of a list: filters, sort and cursor of `listing` on `query`, and the total when the request asks for it.
 * `query` selects the columns of `toRow`; its conditions (not deleted, own accounts) apply to page and total.
 */
export async function readPage<Tables, Table extends keyof Tables, Found, Row>(
  query: SelectQueryBuilder<Tables, Table, Found>,
  options: { listing: Listing; fields: ListFields; toRow: (row: Found) => Row; source?: ListSource },
) {
  const { listing, fields, toRow, source } = options
  const found = await applyListing(query, listing, fields, source).execute()
  const page = buildPage(found as Parameters<typeof buildPage<Found, Row>>[0], listing, toRow)
  const total = listing.count ? { total: await countRows(query, listing, fields, source) } : {}
  return { data: page.rows, pagination: { ...page.pagination, ...total } }
}
