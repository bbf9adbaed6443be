import type { Selectable, SelectQueryBuilder } from 'kysely'
import type { DB } from '../postgres/tables.generated.ts'
import { applyListing, buildPage, countRows, type ListedRow, type ListFields, type Listing } from './listing.ts'

/**
 * Reads one page of a list (docs/contract/api.md#success, docs/contract/api.md#filters): filters, sort and cursor of `listing` on `query`, and the total when it was asked
 * for. `query` selects nothing yet; whatever it already restricts (living rows, own accounts) holds for page and total.
 */
export async function readPage<Table extends keyof DB & string, Row>(
  query: SelectQueryBuilder<DB, Table, object>,
  options: { listing: Listing; fields: ListFields; toRow: (row: Selectable<DB[Table]>) => Row },
) {
  const { listing, fields, toRow } = options
  const rows = (await applyListing(query.selectAll(), listing, fields).execute()) as (Selectable<DB[Table]> &
    ListedRow)[]
  const page = buildPage(rows, listing, (row) => toRow(row as Selectable<DB[Table]>))
  const total = listing.count ? { total: await countRows(query, listing, fields) } : {}
  return { data: page.rows, pagination: { ...page.pagination, ...total } }
}
