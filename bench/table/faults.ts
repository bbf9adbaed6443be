import type pg from 'pg'
import { EVENT_TYPE } from '../api-case.ts'
import { monotonicMs } from '../monotonic.ts'
import { compareArrivals } from './delivery-outcome.ts'
import { makeAccounts } from './saturation.ts'
import { openStage, withClient } from './stage.ts'
import { STALL_MS } from './stage-load.ts'
import type { TableRow } from './table-row.ts'

const COUNT = 20_000
const BATCH = 500
/** When the faults happen, as parts of all deliveries. */
const KILL_AT = 0.25
const CUT_AT = 0.5

/** The counts that faults at full load leave behind. */
export const faults: TableRow = {
  name: 'faults',
  title: `${COUNT} events by the batch: kill -9 of one of two dispatching processes at a quarter, every connection cut at half`,
  measure: async (testbed, stack) => {
    // Every cut connection is an error line.
    const stage = await openStage(testbed, stack, { environment: { LOG_LEVEL: 'fatal' } })
    const { sink, publisher } = testbed
    const accounts = await makeAccounts(stage)
    const second = await stage.startSecond({ SIGNALBOX_ROLES: 'dispatcher' })
    const run = testbed.nextRun()
    const reach = (arrivals: number) => sink.ask({ do: 'wait', arrivals, repeats: 0, stallMs: STALL_MS })
    await sink.ask({ do: 'begin', run, numberedBy: 'event' })
    const { origin, jwt } = stage
    const pace = { batch: BATCH, count: COUNT }
    const loading = publisher.ask({ origin, jwt, eventType: EVENT_TYPE, accounts, run, pace })
    await reach(COUNT * KILL_AT)
    await second.kill()
    await reach(COUNT * CUT_AT)
    await withClient(stage.connectionString, cutOthers)
    const load = await loading
    const accepted = load.acceptedAtMs.filter((at) => at > 0).length
    await reach(accepted)
    const ledger = await withClient(stage.connectionString, readLedger)
    const arrived = await reach(accepted)
    const outcome = compareArrivals(load, arrived, () => true)
    const posts = arrived.arrivals + arrived.repeats
    return {
      figures: [
        { what: 'deliveries/s', value: outcome.perSecond },
        { what: 'accepted events', value: accepted },
        { what: 'lost', value: outcome.lost, goal: { value: { atMost: 0 } } },
        { what: 'deliveries that arrived twice', value: outcome.duplicates },
        {
          what: 'POSTs that the ledger does not count',
          value: posts - ledger.attempts,
          goal: { value: { atMost: 0 } },
        },
        { what: 'attempts of one delivery at most', value: ledger.most, goal: { value: { atMost: 5 } } },
        { what: 'deliveries without an end', value: ledger.open, goal: { value: { atMost: 0 } } },
      ],
      notes: [
        'What was in flight, or not recorded yet, when a process was killed or cut off is posted again: it may arrive twice.',
        `Requests that the cut refused: ${load.refused}; their events are not accepted, and may be recorded all the same.`,
      ],
      reasons: [],
    }
  },
}

/** Ends every other connection to the database, as a restart of PostgreSQL does. */
async function cutOthers(client: pg.Client): Promise<void> {
  await client.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  )
}

/** Reads the ledger when nothing waits or is in flight any more, at most a minute later. */
async function readLedger(client: pg.Client): Promise<{ open: number; attempts: number; most: number }> {
  const until = monotonicMs() + 60_000
  for (;;) {
    const { rows } = await client.query(`
      select (select count(*)::int from webhook_dispatch_open) as open, sum(attempts)::int as attempts,
        max(attempts) as most
      from webhook_dispatch`)
    if (rows[0].open === 0 || monotonicMs() > until) return rows[0]
    await client.query('select pg_sleep(0.2)')
  }
}
