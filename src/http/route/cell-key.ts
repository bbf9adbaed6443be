import type { AccountId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { PermissionScope } from '../shape/caller.ts'
import { Type } from '../shape/schema-type.ts'

/** The owner of a row. */
export interface RowOwner {
  account: AccountId | null
}

/** Finds the owner of a row by its id, deleted or not, in one database; undefined without the row. */
export type FindOwner = (db: Database, id: string) => Promise<RowOwner | undefined>

/**
 * Member of a request that tells the database of rows that live in cells (docs/decisions/0062-cells.md).
 *
 * - `scope`: that of the only account that the caller reaches, or that the filter `account|eq|` names, or of the row that
 *   one of `filters` names by its id (`webhook|eq|`). Where it may be several: with `several: 'merge'` all of them are read
 *   (`MergedReads`), with `refuse` the request is a 422; else home. `staysBehind`: home is read too for a caller of several
 *   accounts, since rows of several accounts stay there when these move.
 * - `all`: every database is read (`MergedReads`): entries stay where they were written.
 * - `account`: of the member `account` of the body; home for a global webhook, and without an account.
 * - `row`: the database that has the row of the id in the path, or in the member `member` of the body. `changesOwner`: the
 *   body may name another owner, which must be in the same database. `staysBehind`: home is asked too.
 * - `operation`: the operation itself asks for each account.
 * - `each`: the operation puts together what it reads in each database that the caller reaches (`readEach`); the answer names
 *   the cells that are away (`missing_cells`).
 */
export type CellKey =
  | { by: 'scope'; filters?: Readonly<Record<string, FindOwner>>; several?: 'merge' | 'refuse'; staysBehind?: true }
  | { by: 'all' }
  | { by: 'account' }
  | { by: 'row'; findOwner: FindOwner; member?: string; changesOwner?: true; staysBehind?: true }
  | { by: 'operation' }
  | { by: 'each' }

/** A database that a caller reaches. */
export interface ReachedDatabase {
  /** The name of the cell; null for home. */
  cell: string | null
  db: Database
  /** Reach of the caller in it: the accounts that are there, or everything. */
  scope: PermissionScope
}

/**
 * Reads in each database that the caller reaches, in parallel, home first; without cells in that of the request alone.
 * Leaves out cells that are away, and the answer names them. `accounts`: only where these are, and with no others in
 * `scope`; home is asked too.
 */
export type ReadEach = <Result>(
  read: (database: ReachedDatabase) => Promise<Result>,
  accounts?: readonly AccountId[],
) => Promise<Result[]>

/** The member of an answer that names the cells whose part is not in its `data`. */
export const MISSING_CELLS = {
  missing_cells: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Names of cells that do not answer: their part is missing in `data`. Absent while all answer.',
    }),
  ),
}
