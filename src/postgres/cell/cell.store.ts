import type { AccountId } from '../../base/id.ts'
import type { Database } from '../statement/database.ts'
import { statement } from '../statement/statement.ts'

/** Where an account is. */
export interface AccountPlace {
  /** Null: home. */
  cell: string | null
  /** Raised by each move; 0 for an account that never moved. */
  version: number
}

const selectPlace = statement<AccountPlace, { account: AccountId }>(`
  select c.cell, coalesce(c.version, 0)::float8 as version
  from (values ($account::uuid)) one (account) left join account_cell c on c.account = one.account`)

/** The directory's row of an account; home for one without a row. */
export async function findPlace(db: Database, account: AccountId): Promise<AccountPlace> {
  const [place] = await selectPlace(db, { account })
  return place as AccountPlace
}
