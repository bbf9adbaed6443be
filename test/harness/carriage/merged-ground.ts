import { randomUUID } from 'node:crypto'
import { buildKeyring } from '../../../src/base/keyring.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { type ContractFixture, startContractFixture } from '../../contract/contract-fixture.ts'
import { TEST_SECRETS } from '../app/test-secrets.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../fakes/proxy.ts'

/** A log without a server behind it, and no worker that would deliver or delete. */
const ONLY_API = { EVENT_LOG_URL: 'nats://127.0.0.1:1', SIGNALBOX_ROLES: 'api' }

/** A database that holds accounts; null: home. */
export type GroundPlace = null | 'c1' | 'c2'
const GROUND_PLACES: readonly GroundPlace[] = [null, 'c1', 'c2']

/** A row of a table, by column. */
export type GroundRow = Record<string, unknown>

/** A service over home and two cells, and one with the same rows in one database. */
export interface MergedGround extends AsyncDisposable {
  merged: ContractFixture
  alone: ContractFixture
  at(place: GroundPlace): TestDatabase
  /** Between the service and its cell. */
  proxy(cell: 'c1' | 'c2'): DatabaseProxy
  /** Makes an account that is in this database. */
  addAccount(place: GroundPlace): Promise<string>
  /** Writes rows into this database, and into that of the service with one. */
  add(place: GroundPlace, table: string, rows: readonly GroundRow[]): Promise<void>
  /** The directory says from now on that the account is in this database. */
  direct(account: string, place: GroundPlace): Promise<void>
}

/** Writes rows into a table. */
async function insertRows({ pool }: TestDatabase, table: string, rows: readonly GroundRow[]): Promise<void> {
  const [first] = rows
  if (!first) return
  const columns = Object.keys(first).join(', ')
  await pool.query(
    `insert into ${table} (${columns}) select ${columns} from jsonb_populate_recordset(null::${table}, $1::jsonb)`,
    [JSON.stringify(rows)],
  )
}

/** Opens both, with these settings. Rows are written by `add`. */
export async function openMergedGround(env: Record<string, string> = {}): Promise<MergedGround> {
  const stack = new AsyncDisposableStack()
  const open = async () => stack.use(await createTestDatabase({ content: 'prepared', isOwn: true }))
  const databases = new Map<GroundPlace, TestDatabase>()
  const proxies = new Map<GroundPlace, DatabaseProxy>()
  const service = randomUUID()
  for (const place of GROUND_PLACES) {
    const database = await open()
    databases.set(place, database)
    await database.pool.query('insert into database_identity (home, cell) values ($1, $2)', [service, place])
  }
  const at = (place: GroundPlace) => databases.get(place) as TestDatabase
  const home = at(null)
  const keyring = buildKeyring(TEST_SECRETS.secretKey, systemRandom)
  for (const cell of ['c1', 'c2'] as const) {
    const proxy = stack.use(await startDatabaseProxy(at(cell).connectionString))
    proxies.set(cell, proxy)
    await home.pool.query(
      `insert into cell (name, database_url_encrypted, state, created_at, updated_at) values ($1, $2, 'active', now(), now())`,
      [cell, keyring.seal(proxy.connectionString, `cell:${cell}`)],
    )
  }
  const single = await open()
  const merged = stack.use(await startContractFixture({ database: home, env: { ...env, ...ONLY_API } }))
  const alone = stack.use(await startContractFixture({ database: single, env }))
  const direct = async (account: string, place: GroundPlace) => {
    await home.pool.query(
      `insert into account_cell (account, cell, version) values ($1, $2, 1)
       on conflict (account) do update set cell = excluded.cell, version = account_cell.version + 1`,
      [account, place],
    )
  }
  return {
    ...{ merged, alone, at, direct },
    proxy: (cell) => proxies.get(cell) as DatabaseProxy,
    addAccount: async (place) => {
      const account = randomUUID()
      const row = { document_id: account, name: 'Example', created_at: new Date(0), updated_at: new Date(0) }
      for (const database of [...databases.values(), single]) await insertRows(database, 'account', [row])
      if (place !== null) await direct(account, place)
      return account
    },
    add: async (place, table, rows) => {
      await insertRows(at(place), table, rows)
      await insertRows(single, table, rows)
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}
