import type { AccountId } from '../../base/id.ts'
import type { Database } from '../statement/database.ts'
import { changeStatement, rowStatement, statement, testStatement } from '../statement/statement.ts'

/** Where an account is. */
export interface AccountPlace {
  /** Null: home. */
  cell: string | null
  /** Raised by each move; 0 for an account that never moved. */
  version: number
}

const selectPlaces = statement<AccountPlace & { account: AccountId }, { accounts: readonly AccountId[] }>(`
  select x.account, c.cell, coalesce(c.version, 0)::float8 as version
  from unnest($accounts::text[]) x (account)
  left join lateral (select * from account_cell y where y.account = x.account::uuid offset 0) c on true`)

/** The directory's rows of accounts, by their ids as given; home for one without a row. */
export async function findPlaces(
  db: Database,
  accounts: readonly AccountId[],
): Promise<ReadonlyMap<AccountId, AccountPlace>> {
  const rows = await selectPlaces(db, { accounts })
  return new Map(rows.map(({ account, cell, version }) => [account, { cell, version }]))
}

/** Kind of a database. */
export interface DatabaseIdentity {
  /** The service, by an id of its home. */
  home: string
  /** Null: this is home. */
  cell: string | null
}

/** The identity of a database; undefined before the first `signalbox cell add`. */
export const findIdentity = rowStatement<DatabaseIdentity>('select home, cell from database_identity')

const insertIdentity = changeStatement<{ home: string }>(
  `insert into database_identity (home, cell) values ($home, null) on conflict (is_only) do nothing`,
)

/** Makes a database a home, unless it is one, or a cell, already. Returns what it is. */
export async function ensureHome(db: Database, home: string): Promise<DatabaseIdentity> {
  await insertIdentity(db, { home })
  return (await findIdentity(db)) as DatabaseIdentity
}

/** The state of a cell: `joining` until it has the reference rows; no account moves to one that is `draining`. */
export type CellState = 'joining' | 'active' | 'draining'

/** A cell, as home knows it. */
export interface CellRecord {
  name: string
  state: CellState
  /** The connection string, sealed. */
  databaseUrlEncrypted: string
  createdAt: Date
}

const CELL = `name, state, database_url_encrypted as "databaseUrlEncrypted", created_at as "createdAt"`

/** The cells, by name. */
export const listCells = statement<CellRecord>(`select ${CELL} from cell order by name`)

/** The cell of this name. */
export const findCell = rowStatement<CellRecord, { name: string }>(`select ${CELL} from cell where name = $name`)

/** Writes a cell that is joining, or the connection string of one that is there. */
export const writeCell = changeStatement<{ name: string; url: string; now: Date }>(`
  insert into cell as c (name, database_url_encrypted, state, created_at, updated_at)
  values ($name, $url, 'joining', $now, $now)
  on conflict (name) do update set database_url_encrypted = excluded.database_url_encrypted, updated_at = excluded.updated_at`)

/** Changes the state of a cell that is in one of `from`. False when it is not. */
export const changeCellState = testStatement<{
  name: string
  state: CellState
  from: readonly CellState[]
  now: Date
}>('update cell set state = $state, updated_at = $now where name = $name and state = any($from::text[])')

/** Removes a cell without accounts and moves. False when it has some. */
export const removeCell = testStatement<{ name: string }>(`
  delete from cell where name = $name
    and not exists (select from account_cell where cell = $name)
    and not exists (select from account_move where source = $name or target = $name)`)

/** Lets no cell be added or removed until the transaction ends. */
export const lockCells = statement<object>('lock table cell in share row exclusive mode')

/** Lets no move to a cell begin until the transaction ends: those that began before are seen afterwards. */
export const lockCell = statement<{ state: CellState }, { name: string }>(
  'select state from cell where name = $name for update',
)

/** Ends the checks of writes in home without a cell. Behind `lockCells`. Throws the lock timeout (5 s). */
export const closeUnusedFence = statement<object>(`
  select close_fence() where not exists (select from cell) and not exists (select from account_move)`)

const countAccounts = statement<{ cell: string; accounts: number }>(
  `select cell, count(*)::int as accounts from account_cell where cell is not null group by cell`,
)

/** Number of accounts of each cell that has some. */
export async function countAccountsByCell(db: Database): Promise<ReadonlyMap<string, number>> {
  return new Map((await countAccounts(db)).map(({ cell, accounts }) => [cell, accounts]))
}

const selectStale = statement<
  { id: string; secretEncrypted: string },
  { prefix: string; after: string | null; limit: number }
>(`
  select name as id, database_url_encrypted as "secretEncrypted" from cell
  where not starts_with(database_url_encrypted, $prefix) and ($after::text is null or name > $after::text)
  order by name limit $limit for update`)

const replaceUrl = changeStatement<{ id: string; sealed: string }>(
  'update cell set database_url_encrypted = $sealed where name = $id',
)

/** The encryption context of the connection string of a cell. */
export const cellContextOf = (name: string): string => `cell:${name}`

/** The connection strings of cells, for a new SECRET_KEY. */
export const CELL_SECRETS = {
  list: (db: Database, input: { prefix: string; after: string | null; limit: number }) => selectStale(db, input),
  replace: async (db: Database, id: string, sealed: string): Promise<void> => {
    await replaceUrl(db, { id, sealed })
  },
  contextOf: cellContextOf,
}
