import type pg from 'pg'
import { openDatabase } from '../src/postgres/statement/database.ts'
import { deleteOldDispatches } from '../src/webhook/ledger/removal.store.ts'
import { CLIENTS } from './api-case.ts'
import { call } from './api-client.ts'
import { untilInterrupted } from './interruption.ts'
import { monotonicMs } from './monotonic.ts'
import { attachWhole, listOldPartitions, splitLedger } from './partitioned-ledger.ts'
import { findMedian } from './quantile.ts'
import { cpuPerDelivery, explainCost, perDelivery } from './table/delivery-cost.ts'
import { fillLedger } from './table/ledger-fill.ts'
import { makeAccounts, warmUp } from './table/saturation.ts'
import { openStage, type Stage, withClient } from './table/stage.ts'
import { type LoadFigures, runLoad } from './table/stage-load.ts'
import { openTestbed } from './table/testbed.ts'
import { formatTable } from './text-table.ts'

/** A ledger over 20 days. */
const FILL = { ended: 200_000, waiting: 1_000, webhooks: 200 }

/** Requests of each read, and the seconds and the rate of each load. */
const REQUESTS = 60
const SECONDS = 8
const RATE = 100

/** Age in days of the deliveries that retention removes: the oldest week. */
const OLD = 14
/** Rows of one delete, as of maintenance. */
const DELETE_BATCH = 1_000

const FORMS = ['one table', 'a partition a week', 'a partition a day'] as const
type Form = (typeof FORMS)[number]

/**
 * Compares the ledger as it is with one that is partitioned by ranges of the id: the cost of a delivery, of
 * reads of the API, and of the removal of a day; and the locks of a change from one to the other
 * (docs/decisions/0066-partitions-measured.md). The services run at once and are measured in turn.
 */
export async function measurePartitions(rounds: number): Promise<void> {
  await untilInterrupted(async (stack) => {
    const testbed = await openTestbed(stack, { seconds: SECONDS, isFull: false })
    const fill = async (client: pg.Client) => fillLedger(client, { ...FILL, sinkOrigin: testbed.sinkOrigin })
    const openSplit = (purpose: string, days: number) =>
      openStage(testbed, stack, {
        purpose,
        fill: async (client) => {
          await fill(client)
          await splitLedger(client, days)
        },
      })
    const sides: Record<Form, Stage> = {
      'one table': await openStage(testbed, stack, { fill }),
      'a partition a week': await openSplit('weeks', 7),
      'a partition a day': await openSplit('days', 1),
    }
    console.log(`${testbed.server.description}. ${FILL.ended} ended deliveries over 20 days.`)
    const measured = new Map<string, Record<Form, number[]>>()
    const note = (form: Form, what: string, value: number | undefined) => {
      if (value === undefined) return
      const row = measured.get(what) ?? { 'one table': [], 'a partition a week': [], 'a partition a day': [] }
      row[form].push(value)
      measured.set(what, row)
    }
    for (let round = 0; round < rounds; round += 1)
      for (const form of FORMS) await measureReads(sides[form], (what, ms) => note(form, what, ms))
    await measureLoads(sides, rounds, note)
    for (const form of FORMS) note(form, 'removal of a week, µs a row', await measureRemoval(sides[form], form))
    const show = (values: readonly number[]) => (values.length === 0 ? '-' : findMedian(values).toFixed(2))
    const lines = [...measured].map(([what, row]) => [what, ...FORMS.map((form) => show(row[form]))])
    console.log(formatTable(['median of the rounds', ...FORMS], lines))
    const { checkMs, lockMs } = await withClient(sides['one table'].connectionString, attachWhole)
    console.log(`Making the table the first partition: check ${checkMs.toFixed(0)} ms, locks ${lockMs.toFixed(0)} ms.`)
  })
}

type Note = (form: Form, what: string, value: number | undefined) => void

/** Saturation and a steady rate, in turn. */
async function measureLoads(sides: Record<Form, Stage>, rounds: number, note: Note): Promise<void> {
  const accounts = new Map<Form, string[]>()
  for (const form of FORMS) {
    accounts.set(form, await makeAccounts(sides[form]))
    await warmUp(sides[form], accounts.get(form) ?? [])
  }
  let last: [Form, LoadFigures][] = []
  for (let round = 0; round < rounds; round += 1) {
    last = []
    for (const form of FORMS) {
      const [stage, own] = [sides[form], accounts.get(form) ?? []]
      const loads = {
        saturation: await runLoad(stage, { accounts: own, pace: { clients: CLIENTS, seconds: SECONDS } }),
        steady: await runLoad(stage, { accounts: own, pace: { rate: RATE, seconds: SECONDS } }),
      }
      last.push([form, loads.saturation])
      for (const [name, load] of Object.entries(loads)) {
        note(form, `${name}: CPU of PostgreSQL, ms a delivery`, perDelivery(load, 'postgresMs'))
        note(form, `${name}: all CPU, ms a delivery`, cpuPerDelivery(load))
        note(form, `${name}: WAL, kB a delivery`, (perDelivery(load, 'walBytes') ?? Number.NaN) / 1000)
      }
      note(form, 'saturation: deliveries/s', loads.saturation.perSecond)
    }
  }
  for (const [form, load] of last) console.log(`${form}:\n  ${explainCost(load).join('\n  ')}`)
}

/** Reads of the API: one request after the other. */
async function measureReads({ origin, jwt }: Stage, note: (what: string, ms: number) => void): Promise<void> {
  const get = (path: string) => call(origin, { jwt, method: 'GET', path: `/api/v3/webhook/${path}` })
  const { data } = await get('dispatch')
  const rows = data as unknown as Record<'document_id' | 'webhook' | 'account' | 'event_id', string>[]
  const reads: Record<string, (row: (typeof rows)[number]) => string> = {
    'a delivery by its id': (row) => `dispatch/${row.document_id}`,
    'the deliveries of an event': (row) => `dispatch?filters=event_id|eq|${row.event_id}`,
    'the first page of a webhook': (row) => `dispatch?filters=webhook|eq|${row.webhook}`,
    'the first page of an account': (row) => `dispatch?filters=account|eq|${row.account}`,
    'the first page of all': () => 'dispatch',
    'the first page of failed ones': () => 'dispatch?filters=status|eq|failed',
    'the summary of the dashboard': () => 'dashboard/summary',
  }
  for (const [what, pathOf] of Object.entries(reads)) {
    const times: number[] = []
    for (let n = 0; n < REQUESTS; n += 1) {
      const row = rows[n % rows.length]
      const startedAt = monotonicMs()
      if (row) await get(pathOf(row))
      times.push(monotonicMs() - startedAt)
    }
    note(`${what}, ms`, findMedian(times))
  }
}

/** Removes the deliveries of the oldest week: by the deletes of maintenance, or as partitions, whose rows are counted before. */
async function measureRemoval({ connectionString }: Stage, form: Form): Promise<number> {
  const pool = openDatabase({ connectionString, size: 1, applicationName: 'bench', onError: () => {} })
  try {
    return await withClient(connectionString, async (client) => {
      const { rows } = await client.query<{ before: Date; old: number }>(
        `select date_trunc('day', now()) - $1 * interval '1 day' as before, count(*)::int as old
         from webhook_dispatch_ended where created_at < date_trunc('day', now()) - $1 * interval '1 day'`,
        [OLD],
      )
      const [{ before, old } = { before: new Date(0), old: 0 }] = rows
      const startedAt = monotonicMs()
      if (form === 'one table') {
        for (let deleted = DELETE_BATCH; deleted === DELETE_BATCH; )
          deleted = (await deleteOldDispatches(pool.db, before, DELETE_BATCH)).dispatches
        await client.query('vacuum webhook_dispatch_ended, webhook_attempt')
      } else
        for (const [ended, attempts] of await listOldPartitions(client, before)) {
          await client.query(`select status, count(*) from ${ended} group by status`)
          await client.query(`drop table ${ended}, ${attempts}`)
        }
      return (1_000 * (monotonicMs() - startedAt)) / old
    })
  } finally {
    await pool.close()
  }
}
