import { randomUUID } from 'node:crypto'
import { buildKeyring } from '../../../src/base/keyring.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { TEST_SECRETS } from '../app/test-secrets.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../delivery/delivery-process.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../fakes/proxy.ts'

/** Without a server behind it: what crosses databases waits. */
const LOG = { EVENT_LOG_URL: 'nats://127.0.0.1:1' }

type Place = 'c1' | 'c2' | null

/** A service with home and two cells, without replication: `addAccount` writes the rows that it brings. */
export interface CellsService extends AsyncDisposable {
  at(place: Place): TestDatabase
  fixture: DeliveryFixture
  /** Between the service and a cell. */
  proxies: Record<'c1' | 'c2', DatabaseProxy>
  /** Starts the service on home. */
  start(env?: Record<string, string>): ReturnType<DeliveryFixture['startLocal']>
  /** Makes an account that is in this database. */
  addAccount(name: string, place: Place): Promise<string>
  /** Makes an account be in a database, as the last step of a move does; without its rows. */
  place(account: string, place: Place): Promise<void>
  /** The id of the event type `order.create`, in every database. */
  eventType: string
}

/** Opens home and two cells. */
export async function openCellsService(): Promise<CellsService> {
  const stack = new AsyncDisposableStack()
  const databases = new Map<Place, TestDatabase>()
  const id = randomUUID()
  for (const place of [null, 'c1', 'c2'] as const) {
    const database = stack.use(await createTestDatabase({ content: 'prepared', isOwn: true }))
    databases.set(place, database)
    await database.pool.query('insert into database_identity (home, cell) values ($1, $2)', [id, place])
    await database.pool.query('select open_fence()')
  }
  const at = (place: Place) => databases.get(place) as TestDatabase
  const fixture = stack.use(await openDeliveryFixture(at(null)))
  const eventType = randomUUID()
  await at(null).pool.query(
    `insert into event (document_id, internal, source, account_scope, is_tenant_visible, created_at, updated_at)
     values ($1, 'order.create', 'external', 'account', true, now(), now())`,
    [eventType],
  )
  const keyring = buildKeyring(TEST_SECRETS.secretKey, systemRandom)
  const proxies = {
    c1: stack.use(await startDatabaseProxy(at('c1').connectionString)),
    c2: stack.use(await startDatabaseProxy(at('c2').connectionString)),
  }
  for (const cell of ['c1', 'c2'] as const) {
    await copyRows(at(null), at(cell))
    await at(null).pool.query(
      `insert into cell (name, database_url_encrypted, state, created_at, updated_at) values ($1, $2, 'active', now(), now())`,
      [cell, keyring.seal(proxies[cell].connectionString, `cell:${cell}`)],
    )
  }

  async function place(account: string, target: Place): Promise<void> {
    for (const [at, { pool }] of databases)
      await pool.query(
        `insert into account_fence (account, version, state) values ($1, 1, $2)
         on conflict (account) do update set state = excluded.state`,
        [account, at === target ? 'open' : 'gone'],
      )
    await at(null).pool.query(
      `insert into account_cell (account, cell, version) values ($1, $2, 1)
       on conflict (account) do update set cell = excluded.cell, version = account_cell.version + 1`,
      [account, target],
    )
  }

  const owned = stack.move()
  return {
    ...{ at, fixture, proxies, eventType, place },
    start: (env = {}) => fixture.startLocal({ env: { ...LOG, ...env } }),
    addAccount: async (name, target) => {
      const account = randomUUID()
      for (const { pool } of databases.values())
        await pool.query(
          'insert into account (document_id, name, created_at, updated_at) values ($1, $2, now(), now())',
          [account, name],
        )
      await place(account, target)
      return account
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Copies the rows that logical replication brings. */
async function copyRows(home: TestDatabase, cell: TestDatabase): Promise<void> {
  await cell.pool.query('delete from event')
  for (const table of ['account', 'event']) {
    const { rows } = await home.pool.query(`select coalesce(json_agg(t), '[]')::text as rows from ${table} t`)
    await cell.pool.query(
      `insert into ${table} select * from json_populate_recordset(null::${table}, $1::json) on conflict do nothing`,
      [rows[0].rows],
    )
  }
}
