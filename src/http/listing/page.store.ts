import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Database } from '../../postgres/statement/database.ts'
import { aheadStatement } from '../../postgres/statement/statement.ts'
import type { PermissionScope } from '../shape/caller.ts'
import type { OwnAccount } from './filter.ts'
import type { Listing } from './listing.ts'

export const OWN_ACCOUNT: OwnAccount = sql.ref<string>('own.account')

/** The queries of a list, each with an order and a limit of its own. */
interface Parts {
  scope: PermissionScope
  parts: readonly Expression<unknown>[]
}

/** The first rows of all parts, in the order of the list, to the limit of a page and one more. */
export async function selectPage<Row>(db: Database, list: Parts, { sort, pageSize }: Listing): Promise<Row[]> {
  const direction = sql.raw(sort.descending ? 'desc' : 'asc')
  const rows = sql<Row>`
    select page.* from ${joinParts(list)}
    order by page.listing_sort ${direction}, page.listing_id ${direction} limit ${pageSize + 1}`
  return (await rows.execute(db)).rows
}

/** Whether a condition is false, or unknown. */
export const isNotTrue = (condition: RawBuilder<SqlBool>) => sql<SqlBool>`(${condition}) is not true`

/** Lets the statements of the transaction read bitmaps of an index (`READ_PLANS`). */
export const allowBitmaps = aheadStatement("select set_config('enable_bitmapscan', 'on', true)")

/** Number of rows of all parts, counted up to `limit`. */
export async function countUpTo(db: Database, list: Parts, limit: number): Promise<number> {
  const counted = sql<{ total: number }>`
    select count(*) as "total" from (select from ${joinParts(list)} limit ${limit}) as counted`
  const [row] = (await counted.execute(db)).rows
  return row?.total ?? 0
}

/** The rows of all parts as `page`, those of each account of the scope by themselves. */
function joinParts({ scope, parts }: Parts): RawBuilder<unknown> {
  const all = sql.join(parts, sql` union all `)
  if (scope === 'all') return sql`(${all}) as page`
  return sql`unnest(${[...new Set(scope)]}::uuid[]) as own (account) cross join lateral (${all}) as page`
}
