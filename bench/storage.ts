import { untilInterrupted } from './interruption.ts'
import { makeAccounts } from './table/saturation.ts'
import { openStage, withClient } from './table/stage.ts'
import { runLoad } from './table/stage-load.ts'
import { openTestbed } from './table/testbed.ts'
import { formatTable } from './text-table.ts'

/** The tables that keep rows of an event until retention removes them. */
const TABLES = [
  'event_occurrence',
  'webhook_dispatch_ended',
  'webhook_attempt',
  'audit_log',
  'realtime_message_ended',
] as const

/** Events before those that are measured: the first pages of tables and indexes are half empty. */
const WARM_UP = 2_000

/** Bytes of a table or an index, by its name. */
type Sizes = ReadonlyMap<string, { table: string; isIndex: boolean; bytes: number }>

/**
 * Publishes `count` events, one a request and each delivered to one webhook, and prints what the database keeps of each:
 * bytes of tables and of their indexes. Beyond what the service posts at once, events wait for the router, which updates their
 * rows: at a `rate` that it keeps up with, none leaves a dead row behind.
 */
export async function measureStorage(count: number, rate?: number): Promise<void> {
  await untilInterrupted(async (stack) => {
    const testbed = await openTestbed(stack, { seconds: 0, isFull: false })
    const stage = await openStage(testbed, stack, { environment: { INTEGRATION_REALTIME_EMBEDDED: 'true' } })
    const accounts = await makeAccounts(stage)
    await runLoad(stage, { accounts, pace: { batch: 1, count: WARM_UP } })
    const before = await readSizes(stage.connectionString)
    const pace = rate === undefined ? { batch: 1, count } : { rate, seconds: Math.round(count / rate) }
    await runLoad(stage, { accounts, pace })
    const after = await readSizes(stage.connectionString)
    console.log(`${testbed.server.description}. Bytes for each of ${count} published events with one delivery.`)
    console.log(formatTable(['', 'rows', 'indexes', 'together'], listLines(before, after, count)))
  })
}

function listLines(before: Sizes, after: Sizes, count: number): string[][] {
  const grown = [...after].map(([name, { bytes, ...row }]) => {
    return { name, ...row, each: (bytes - (before.get(name)?.bytes ?? 0)) / count }
  })
  const sum = (ofTable: string | undefined, isIndex?: boolean) =>
    grown
      .filter((item) => (ofTable === undefined || item.table === ofTable) && (isIndex ?? item.isIndex) === item.isIndex)
      .reduce((total, item) => total + item.each, 0)
  const toLine = (title: string, table?: string) => [
    title,
    ...[sum(table, false), sum(table, true), sum(table)].map((each) => each.toFixed(0)),
  ]
  const ofTable = TABLES.flatMap((table) => [
    toLine(table, table),
    ...grown
      .filter((item) => item.table === table && item.isIndex)
      .map(({ name, each }) => [`  ${name}`, '', each.toFixed(0), '']),
  ])
  return [...ofTable, toLine('all')]
}

async function readSizes(connectionString: string): Promise<Sizes> {
  return withClient(connectionString, async (client) => {
    // Ends the pages that a load left half written, and the free space that updates left.
    await client.query(`vacuum ${TABLES.join(', ')}`)
    const { rows } = await client.query<{ name: string; table: string; is_index: boolean; bytes: string }>(
      `select c.relname as name, t.relname as table, c.relkind = 'i' as is_index, pg_table_size(c.oid) as bytes
       from pg_class t
       left join pg_index i on i.indrelid = t.oid
       join pg_class c on c.oid in (t.oid, i.indexrelid)
       where t.relname = any($1) and t.relnamespace = 'public'::regnamespace`,
      [TABLES],
    )
    return new Map(rows.map((row) => [row.name, { table: row.table, isIndex: row.is_index, bytes: Number(row.bytes) }]))
  })
}
