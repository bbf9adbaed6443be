import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { findNatsServer } from '../../test/harness/nats/nats-program.ts'
import { EVENT_TYPE } from '../api-case.ts'
import { call } from '../api-client.ts'
import { type BenchProgram, startProgram } from '../child-process.ts'
import { untilInterrupted } from '../interruption.ts'
import { monotonicMs } from '../monotonic.ts'
import type { EventLoad, EventLoadResult } from '../publisher.ts'
import { findQuantile } from '../quantile.ts'
import type { SinkQuestion, SinkState } from '../sink.ts'
import { compareArrivals } from '../table/delivery-outcome.ts'
import { formatTable } from '../text-table.ts'
import { describeBacklog, describeLoad, readBacklog } from './backlog.ts'
import {
  type CellsGround,
  CONTRACT_TYPE,
  CROSSING_TYPE,
  makeAccount,
  openCellsGround,
  readUsage,
  type Side,
  subscribe,
  until,
} from './ground.ts'
import { measureReading } from './reading.ts'

const BATCH = 1_000
const WARM_UP = 4_000
/** A second for what events still cause: sums, and the intakes of the others. */
const REST_MS = 1_000
/** Without an arrival for so long, what is missing counts as late. */
const STALL_MS = 30_000
/** A failed attempt is retried after a minute. */
const RETRIED_STALL_MS = 90_000
/** A side that takes longer is not measured: the machine is too busy for figures. */
const SIDE_LIMIT_MS = 120_000

/** Messages that an intake passes over. */
const READ_COUNT = 40_000

/** How much is measured. */
export interface CellsLoad {
  /** Deliveries of each side. */
  count: number
  /** Events a second of the latencies, and for how long. */
  rate: number
  seconds: number
}

interface Programs {
  sink: BenchProgram<SinkQuestion, SinkState>
  publisher: BenchProgram<EventLoad, EventLoadResult>
  sinkOrigin: string
  nextRun: () => number
}

/**
 * Measures what a delivery costs in home, in one cell and in two, beside a service without an event log, and the way of an
 * event from one database to the webhook of another, beside the way within one. Prints both.
 */
export async function measureCells(load: CellsLoad): Promise<void> {
  const program = await findNatsServer('cells are not measured')
  if (!program) return
  await untilInterrupted(async (stack) => {
    const reading = await measureReading(program, READ_COUNT)
    const ground = await openCellsGround(stack, program)
    const programs = await startPrograms(stack)
    console.log(`${ground.description}; ${describeLoad()}\n`)
    const costs = await measureCosts(ground, programs, load)
    console.log(
      `${load.count} deliveries in batches of ${BATCH}; CPU ms a delivery\n\n${formatTable(
        ['accounts in', 'deliveries/s', 'service', 'PostgreSQL', 'NATS', 'late', 'retried'],
        costs,
      )}\n\n${COLUMNS}\n`,
    )
    const ways = await measureWays(ground, stack, load)
    console.log(
      `${load.rate} events/s for ${load.seconds} s, from the request to the arrival, ms\n\n${formatTable(
        ['recorded in', 'delivered from', 'p50', 'p99', 'late'],
        ways,
      )}\n\nlate: not arrived two minutes after the last request.\n\nA message that does not concern an intake costs it ${reading.intake.toFixed(3)} ms of CPU, and ${reading.nats.toFixed(3)} in NATS.\nAt the end: ${describeLoad()}.`,
    )
  })
}

const COLUMNS = `late: not arrived when ${STALL_MS / 1_000} s had passed without an arrival, or ${SIDE_LIMIT_MS / 1_000} s in all; all of them arrived later.
retried: of the deliveries that had not ended then, those with a failed attempt, whose retry is due after a minute; the others waited for the service or its database.`

async function startPrograms(stack: AsyncDisposableStack): Promise<Programs> {
  const sink = startProgram<SinkQuestion, SinkState>('sink.ts')
  const publisher = startProgram<EventLoad, EventLoadResult>('publisher.ts')
  for (const each of [sink, publisher]) stack.defer(() => each.stop())
  let run = 0
  return { sink, publisher, sinkOrigin: (await sink.ask({ do: 'open' })).origin, nextRun: () => run++ }
}

async function measureCosts(ground: CellsGround, programs: Programs, { count }: CellsLoad): Promise<string[][]> {
  const { plain, cells, makeAccounts } = ground
  const urlOf = (n: number) => `${programs.sinkOrigin}/ok/${n}`
  const one = await makeAccounts(cells, 'c1', urlOf)
  const two = await makeAccounts(cells, 'c2', urlOf)
  const sides: [string, Side, string[]][] = [
    ['one database, no log', plain, await makeAccounts(plain, null, urlOf)],
    ['home, beside cells', cells, await makeAccounts(cells, null, urlOf)],
    ['one cell', cells, one],
    ['two cells', cells, one.flatMap((account, n) => [account, two[n] as string])],
  ]
  const lines: string[][] = []
  for (const [name, side, accounts] of sides) await publish(side, programs, { name, accounts, count: WARM_UP })
  for (const [name, side, accounts] of sides) {
    const before = await readUsage(side)
    const outcome = await publish(side, programs, { name, accounts, count })
    const after = await readUsage(side)
    const { perSecond, delivered, late, retried } = outcome
    const each = (['service', 'postgres', 'log'] as const).map((part) => (after[part] - before[part]) / delivered)
    lines.push([name, perSecond.toFixed(0), ...each.map((ms) => ms.toFixed(3)), ...[late, retried].map(String)])
    console.log(lines.at(-1)?.join('  '))
  }
  return lines
}

/**
 * Publishes by the batch, and waits for the arrivals and until the log has everything. Throws with what waits in the
 * databases when a delivery does not arrive or the side takes too long, and when a request is refused.
 */
async function publish(side: Side, programs: Programs, given: { name: string; accounts: string[]; count: number }) {
  const { sink, publisher, nextRun } = programs
  const { origin, jwt, pools } = side
  const run = nextRun()
  await sink.ask({ do: 'begin', run, numberedBy: 'event' })
  const pace = { batch: BATCH, count: given.count }
  const load = await publisher.ask({ origin, jwt, eventType: EVENT_TYPE, accounts: given.accounts, run, pace })
  if (load.refused > 0)
    throw new Error(`${given.name}: ${load.refused} requests refused, ${describeLoad()}; the first: ${load.firstError}`)
  const expected = { do: 'wait', arrivals: load.accepted, repeats: 0, limitMs: SIDE_LIMIT_MS } as const
  let arrivals = await sink.ask({ ...expected, stallMs: STALL_MS })
  const late = load.accepted - arrivals.arrivals
  let retried = 0
  if (late > 0) {
    const backlog = await readBacklog(pools)
    retried = backlog.retried
    const say = (missing: number, what: string) =>
      `${given.name}: ${missing} of ${load.accepted} deliveries ${what}; ${describeLoad()}`
    console.log(say(late, `are late: ${describeBacklog(backlog)}`))
    arrivals = await sink.ask({ ...expected, stallMs: RETRIED_STALL_MS })
    const missing = load.accepted - arrivals.arrivals
    if (missing > 0) throw new Error(say(missing, `have not arrived: ${describeBacklog(await readBacklog(pools))}`))
  }
  for (const { pool } of pools)
    await until('an empty outbox', async () => (await pool.query('select from event_outbox limit 1')).rowCount === 0)
  await sleep(REST_MS)
  return { ...compareArrivals(load, arrivals, () => true), late, retried }
}

/** A way of events: what is asked for one, and its webhook. */
interface Way {
  names: [string, string]
  side: Side
  account: string
  webhook: object
  type: typeof CONTRACT_TYPE | typeof CROSSING_TYPE
}

async function measureWays({ plain, cells }: CellsGround, stack: AsyncDisposableStack, load: CellsLoad) {
  const receiver = await startReceiver(stack)
  const of = async (side: Side, cell: string | null) => ({ side, account: await makeAccount(side, cell) })
  const own = (given: { account: string }) => ({ url: `${receiver.origin}/own`, account: given.account })
  const [alone, inHome, inCell] = [await of(plain, null), await of(cells, null), await of(cells, 'c1')]
  const all = { url: `${receiver.origin}/all`, is_global: true }
  const ways: Way[] = [
    { ...alone, names: ['one database, no log', 'itself'], webhook: own(alone), type: CONTRACT_TYPE },
    { ...inHome, names: ['home', 'home'], webhook: own(inHome), type: CONTRACT_TYPE },
    { ...inCell, names: ['home', 'a cell'], webhook: own(inCell), type: CONTRACT_TYPE },
    { ...inCell, names: ['a cell', 'home'], webhook: all, type: CROSSING_TYPE },
  ]
  const lines: string[][] = []
  for (const way of ways) {
    await subscribe(way.side, way.webhook, way.type)
    await measureWay(way, receiver.arrivedAtMs, { ...load, seconds: 2 })
    const { latenciesMs, lost } = await measureWay(way, receiver.arrivedAtMs, load)
    if (lost > 0)
      console.log(`${way.names.join(' to ')}: ${lost} late: ${describeBacklog(await readBacklog(way.side.pools))}`)
    const quantiles = [0.5, 0.99].map((share) => findQuantile(latenciesMs, share).toFixed(1))
    lines.push([...way.names, ...quantiles, String(lost)])
    console.log(lines.at(-1)?.join('  '))
  }
  return lines
}

/** Makes events at a steady rate, whatever the answers take. */
async function measureWay(
  { side, account, type }: Way,
  arrivedAtMs: ReadonlyMap<string, number>,
  { rate, seconds }: CellsLoad,
) {
  const { origin, jwt } = side
  const startedAtMs = monotonicMs()
  const sent: Promise<[string, number]>[] = []
  const send = async (n: number): Promise<[string, number]> => {
    const atMs = monotonicMs()
    const id = `x${startedAtMs}-${n}`
    if (type === CONTRACT_TYPE) {
      const body = { name: 'Bench', account }
      const made = await call(origin, { jwt, method: 'POST', path: '/api/v3/contract/contract', body })
      return [String(made.data.document_id), atMs]
    }
    await call(origin, { jwt, method: 'POST', path: '/api/v3/webhook/publish', body: { event: type, account, id } })
    return [id, atMs]
  }
  while (sent.length < rate * seconds) {
    const due = Math.floor(((monotonicMs() - startedAtMs) * rate) / 1_000) + 1
    while (sent.length < Math.min(due, rate * seconds)) sent.push(send(sent.length))
    await sleep(1)
  }
  const events = await Promise.all(sent)
  await until('the arrivals', async () => events.every(([id]) => arrivedAtMs.has(id))).catch(() => {})
  const latenciesMs = events.flatMap(([id, atMs]) => {
    const arrived = arrivedAtMs.get(id)
    return arrived === undefined ? [] : [arrived - atMs]
  })
  return { latenciesMs, lost: events.length - latenciesMs.length }
}

/** A receiver in this process, which notes the resource of each event. */
async function startReceiver(stack: AsyncDisposableStack) {
  const arrivedAtMs = new Map<string, number>()
  const server = createServer((request, response) => {
    const atMs = monotonicMs()
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const { id } = JSON.parse(body).data
      if (!arrivedAtMs.has(id)) arrivedAtMs.set(id, atMs)
      response.writeHead(200, { 'content-length': 2 }).end('ok')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stack.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, arrivedAtMs }
}
