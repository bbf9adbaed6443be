import type { AccountId } from '../../base/id.ts'
import { soleRowStatement } from '../statement/statement.ts'

/** An account, where it is, and the other database of its move. */
export interface DirectedAccount {
  account: AccountId
  /** Null: home. */
  cell: string | null
  /** Raised by each move. */
  version: number
  isMoving: boolean
}

/** Places of accounts by home, at one instant. */
export interface DirectoryState {
  /** Raised by each process that takes a move over: while it stays, no further account is being copied. */
  epoch: string
  /** The cells that have accounts. */
  cells: string[]
  accounts: DirectedAccount[]
}

/** Where these accounts are, and those that move with `withMoving`, past every cache. */
export const readDirectory = soleRowStatement<DirectoryState, { known: readonly AccountId[]; withMoving: boolean }>(`
  select (select last_value::text from account_move_epoch) as epoch,
    array(select c.name from cell c where exists (select from account_cell a where a.cell = c.name) order by c.name) as cells,
    coalesce((
      select json_agg(json_build_object(
        'account', x.account,
        'cell', (select a.cell from account_cell a where a.account = x.account),
        'version', coalesce((select a.version from account_cell a where a.account = x.account), 0),
        'isMoving', exists (select from account_move m where m.account = x.account)))
      from (select unnest($known::uuid[]) as account
        union select m.account from account_move m where $withMoving::boolean) x
    ), '[]'::json) as accounts`)
