import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/base/clock.ts'
import type { AccountId } from '../src/base/id.ts'
import { beginMove } from '../src/carriage/move/move.store.ts'
import { runMove } from '../src/carriage/move/mover.ts'
import { migrate } from '../src/postgres/migration/migrate.ts'
import { type DatabasePool, INDEX_ONLY_PLANS, openDatabase } from '../src/postgres/statement/database.ts'
import { openDatabaseServer } from './database-server.ts'
import { untilInterrupted } from './interruption.ts'
import { monotonicMs } from './monotonic.ts'
import { formatTable } from './text-table.ts'

const ACCOUNT = '01990000-0000-7000-8000-000000000001' as AccountId
const WEBHOOK = '01990000-0000-7000-8000-000000000002'

/**
 * Moves an account with so many rows, half of them events and half ended deliveries, to an empty cell of the same server,
 * and prints the time of each step and the memory, beside the deliveries copied by one statement within a database.
 */
export async function measureMove(rows: number): Promise<void> {
  await untilInterrupted(async (stack) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const server = await openDatabaseServer(dataDir)
    stack.defer(() => server.close())
    const pools = new Map<string | null, DatabasePool>()
    for (const place of [null, 'c1']) {
      const connectionString = await server.createDatabase(`move_${place ?? 'home'}`)
      await migrate(connectionString)
      const options = { size: 2, applicationName: 'bench move', settings: INDEX_ONLY_PLANS, onError: () => {} }
      const pool = openDatabase({ connectionString, ...options, limits: { statementMs: 600_000, silenceMs: 601_000 } })
      stack.defer(() => pool.close())
      pools.set(place, pool)
      await pool.pool.query(
        `insert into database_identity (home, cell) values ('01990000-0000-7000-8000-000000000009', $1)`,
        [place],
      )
    }
    const home = pools.get(null) as DatabasePool
    await fill(home, rows / 2)
    console.log(`${server.description}. ${rows} rows.`)
    const baseMs = await copyWithin(home)
    const steps = new Map<string, number>()
    let [step, since, most] = ['', monotonicMs(), 0]
    const before = process.memoryUsage().rss
    await beginMove(home.db, { account: ACCOUNT, target: 'c1', drainSeconds: 600 })
    await runMove(
      {
        open: async (place) => (pools.get(place) as DatabasePool).db,
        runner: 'bench',
        sleep: (ms) => systemClock.sleep(ms, new AbortController().signal),
        onProgress: (progress) => {
          most = Math.max(most, process.memoryUsage().rss)
          if (progress.step === step) return
          const now = monotonicMs()
          steps.set(step, now - since)
          step = progress.step
          since = now
        },
      },
      ACCOUNT,
    )
    steps.set(step, monotonicMs() - since)
    const lines = [...steps].filter(([name]) => name !== '').map(([name, ms]) => [name, (ms / 1_000).toFixed(1)])
    const perRow = (ms: number, count: number) => ((ms * 1_000) / count).toFixed(1)
    console.log(formatTable(['step', 's'], lines))
    console.log(
      `Copy: ${perRow(steps.get('copy') ?? 0, rows)} µs a row; an insert from a table beside: ${perRow(baseMs, rows / 2)}.`,
    )
    console.log(`Memory: ${((most - before) / 1_048_576).toFixed(0)} MB more than before.`)
  })
}

async function fill({ pool }: DatabasePool, events: number): Promise<void> {
  await pool.query(
    `insert into cell (name, database_url_encrypted, state, created_at, updated_at) values ('c1', '-', 'active', now(), now())`,
  )
  await pool.query(
    `insert into webhook (document_id, url, account, created_at, updated_at) values ($1, 'https://example.com/', $2, now(), now())`,
    [WEBHOOK, ACCOUNT],
  )
  await pool.query(
    `insert into event_occurrence (document_id, event, account, resource, action, resource_id, created_at, routed_at)
     select gen_random_uuid(), 'order.create', $1, 'order', 'create', n::text, now() - n * interval '10 ms', now()
     from generate_series(1, $2::int) n`,
    [ACCOUNT, events],
  )
  await pool.query(
    `insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, created_at,
       updated_at, ended_at, worker, last_attempt_at, last_duration_ms, last_status_code, response_excerpt)
     select gen_random_uuid(), $1, document_id, event, account, 'success', 1, created_at, created_at, created_at, 'worker',
       created_at, 12, 200, '{"ok":true}'
     from event_occurrence`,
    [WEBHOOK],
  )
  await pool.query('analyze')
}

/** Milliseconds of one statement that copies the deliveries into a table with the same indexes. */
async function copyWithin({ pool }: DatabasePool): Promise<number> {
  await pool.query('create table beside (like webhook_dispatch_ended including all)')
  const beganMs = monotonicMs()
  await pool.query('insert into beside select * from webhook_dispatch_ended')
  const tookMs = monotonicMs() - beganMs
  await pool.query('drop table beside')
  return tookMs
}
