import {
  type AccountId,
  buildIdMaker,
  type DispatchId,
  type EventId,
  type IdMaker,
  type WebhookId,
} from '../../src/base/id.ts'
import { buildKeyring, type Keyring } from '../../src/base/keyring.ts'
import type { Random } from '../../src/base/random.ts'
import type { AttemptResult } from '../../src/delivery/post/attempt-result.ts'
import type { PostRequest } from '../../src/outbound/send/http-sender.ts'
import { verifyTimestamped } from '../../src/outbound/signature.ts'
import type { Database } from '../../src/postgres/statement/database.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { buildLedger, type Ledger } from '../harness/delivery/ledger.ts'
import { buildManualClock, type ManualClock } from '../harness/run/manual-clock.ts'
import { compare } from './comparison.ts'
import { addRow, buildModel, listRecipients, type Model } from './model.ts'
import { EVENT_TYPES, publishEvents } from './operations.ts'
import { type Answer, type Fault, type ProcessPlan, type SimulatedProcess, startProcess } from './process.ts'
import { buildDice, buildSeededRandom, type Dice, rollFor } from './seed.ts'
import { watchClaims } from './throttle.ts'

/** The real stores and decisions on a real database; time, chance and the network by hand. */
export interface Simulation extends AsyncDisposable {
  seed: number
  dice: Dice
  random: Random
  clock: ManualClock
  /** The latest time that the clock showed before it was set back. */
  latestMs: number
  database: TestDatabase
  db: Database
  ids: IdMaker
  keyring: Keyring
  ledger: Ledger
  accounts: AccountId[]
  model: Model
  /** Faults, in words. The run has failed unless it is empty. */
  faults: string[]
  /** Whether every receiver answers 200. */
  isHealed: boolean
  /** Events that were committed and not routed yet. */
  unrouted: Set<EventId>
  hung: SimulatedProcess[]
  /** Those that work; the last one that was started is the last. */
  processes: SimulatedProcess[]
  /** Those whose connections the server may not have ended yet. */
  dead: SimulatedProcess[]
  seenLog: Set<string>
  /** Webhooks that one event is routed to in one statement. */
  rowsOfEvent: number
}

/** Processes that work at once at most. */
const PROCESSES = 3

/** Opens a simulation. */
export async function openSimulation(seed: number): Promise<Simulation> {
  const dice = buildDice(seed)
  const random = buildSeededRandom(dice)
  const clock = buildManualClock()
  // Not shared: it gets a table and a trigger.
  const database = await createTestDatabase({ isOwn: true })
  await watchClaims(database.db)
  const ledger = buildLedger(database.db, clock)
  for (const [internal, scope] of Object.entries(EVENT_TYPES)) await ledger.addEventType(internal, scope)
  const accounts = [await ledger.addAccount(), await ledger.addAccount(), await ledger.addAccount()]
  const simulation: Simulation = {
    seed,
    dice,
    random,
    clock,
    latestMs: clock.now(),
    database,
    db: database.db,
    ids: buildIdMaker(clock, random),
    keyring: buildKeyring(['simulation-secret-key-of-at-least-32-bytes'], random),
    ledger,
    accounts,
    model: buildModel(),
    faults: [],
    isHealed: false,
    unrouted: new Set(),
    hung: [],
    processes: [],
    dead: [],
    seenLog: new Set(),
    rowsOfEvent: dice.pick([2, 6, 1_000, 1_000]),
    [Symbol.asyncDispose]: async () => {
      for (const process of [...simulation.processes, ...simulation.hung]) process.kill()
      await database[Symbol.asyncDispose]()
    },
  }
  return simulation
}

/** Receiver of a webhook: checks a POST, records it, and answers. */
function answerPost(
  simulation: Simulation,
  request: PostRequest,
  by: { process: SimulatedProcess; wasHeld: boolean },
): AttemptResult {
  const { process, wasHeld } = by
  const { model, seed } = simulation
  const id = request.headers['x-service-delivery'] as DispatchId
  const attempt = Number(request.headers['x-service-attempt'])
  const row = model.rows.get(id)
  const webhook = row && model.webhooks.get(row.webhook)
  const fault = (what: string) => simulation.faults.push(`POST of ${id}, attempt ${attempt}: ${what}`)
  if (!row || !webhook) fault('no such row')
  if (row && row.nextAttemptAtMs === null) fault(`the row is ${row.status}`)
  // A process that hung claimed what it posts now before the clock was set back.
  const dueByMs = process.isLost ? Math.max(simulation.latestMs, simulation.clock.now()) : simulation.clock.now()
  if (row?.nextAttemptAtMs && row.nextAttemptAtMs > dueByMs) fault('sooner than it is due')
  if (row && attempt <= row.attempts) fault(`the row has ${row.attempts} attempts`)
  if (webhook && !webhook.isActive && !row?.isTest && !wasHeld) fault('the webhook is inactive')
  if (webhook?.isDeleted) fault('the webhook is deleted')
  if (webhook && webhook.url !== request.url) fault('to a URL that was changed')
  const header = request.headers['x-service-signature']
  const nowSeconds = Math.floor(simulation.clock.now() / 1000)
  const body = String(request.body)
  if (webhook && !verifyTimestamped({ secret: webhook.secret, header, body, nowSeconds }).ok) fault('signed wrongly')
  const key = `${id} ${attempt}`
  if (model.posts.has(key)) fault('was made before')
  const illness = simulation.isHealed ? 0 : (webhook?.illness ?? 0)
  const result = pickResult(rollFor(seed, key), illness)
  model.posts.set(key, { order: model.posts.size, atMs: simulation.clock.now(), result, process })
  return result
}

const FAILURES: readonly AttemptResult[] = [
  { statusCode: 500 },
  { statusCode: 503 },
  { statusCode: 404 },
  { statusCode: 401 },
  { errorClass: 'timeout' },
  { errorClass: 'connect' },
  { errorClass: 'reset' },
  { statusCode: 302 },
  { statusCode: 308 },
]

function pickResult(roll: number, illness: number): AttemptResult {
  if (roll >= illness) return { statusCode: 200 }
  return FAILURES[Math.floor((roll / illness) * FAILURES.length)]!
}

/** Routes what waits, by one router or by two at once, and compares the new rows with the rules. */
export async function route(simulation: Simulation): Promise<void> {
  const { model, db, clock } = simulation
  // Lost attempts are taken back before: they may raise events, which would be routed unseen. POSTs take time, in which more
  // attempts may count as lost.
  for (let posts = -1; posts < model.posts.size; ) {
    posts = model.posts.size
    await dispatch(simulation, 'none')
  }
  const types = new Map(Object.entries(EVENT_TYPES))
  const inline = await publishByProcess(simulation)
  const events = await db
    .selectFrom('event_occurrence')
    .selectAll()
    .where((eb) => eb.or([eb('routed_at', 'is', null), eb('document_id', 'in', [NO_EVENT, ...inline])]))
    .execute()
  const expected = new Set<string>()
  for (const event of events)
    for (const webhook of listRecipients(model, {
      id: event.document_id as EventId,
      type: event.event,
      scope: types.get(event.event) ?? 'none',
      account: event.account as AccountId | null,
      isPurge: event.is_purge,
      excluded: event.excluded_webhook as WebhookId | null,
      ordinal: Number(event.ordinal),
    }))
      expected.add(`${webhook} ${event.document_id}`)
  const stored = new Set<string>(events.map((event) => event.document_id))
  for (const id of simulation.unrouted)
    if (!stored.has(id)) simulation.faults.push(`event ${id} was committed and is gone`)
  simulation.unrouted.clear()
  await routeByProcesses(simulation)
  for (const row of await db.selectFrom('webhook_dispatch').select(['document_id', 'webhook', 'event_id']).execute()) {
    if (model.rows.has(row.document_id as DispatchId)) continue
    if (!expected.delete(`${row.webhook} ${row.event_id}`))
      simulation.faults.push(`row ${row.document_id} matches no rule`)
    const ids = {
      id: row.document_id as DispatchId,
      webhook: row.webhook as WebhookId,
      eventId: row.event_id as EventId,
    }
    addRow(model, { ...ids, isTest: false }, clock.now())
  }
  for (const missing of expected) simulation.faults.push(`no row for webhook and event ${missing}`)
  for (const process of [...simulation.processes]) {
    process.release()
    await settle(simulation)
  }
}

/** No event has this id: a list of none is no SQL. */
const NO_EVENT = '00000000-0000-0000-0000-000000000000' as EventId

/** Lets a process publish events; what it claims with them is held back until the model knows it. Returns their ids. */
async function publishByProcess(simulation: Simulation): Promise<EventId[]> {
  const { dice } = simulation
  const [process] = simulation.processes.filter((item) => item.plan.isRunning && !item.isLost)
  if (!process) return []
  for (const worker of simulation.processes) worker.hold()
  return publishEvents(simulation, process, dice.between(1, 16))
}

/** Lets one process or two at once route what waits. What they claim as they route is held back until the model knows it. */
async function routeByProcesses(simulation: Simulation): Promise<void> {
  const { dice } = simulation
  if (simulation.processes.length === 0) await launch(simulation, 'none', { isRunning: false })
  const first = dice.pick(simulation.processes)
  const routers = dice.chance(0.3) ? new Set([first, dice.pick(simulation.processes)]) : new Set([first])
  for (const process of simulation.processes) process.hold()
  await Promise.all([...routers].map((process) => process.route()))
  await bury(simulation)
  // Rows that a router left behind when it went down.
  // The new process must not run: it would take back the lost attempts, whose events would be routed unseen.
  const successors =
    simulation.processes.length === 0 ? [await launch(simulation, 'none', { isRunning: false })] : simulation.processes
  for (const process of successors.slice(0, 1)) {
    process.hold()
    await process.route()
  }
  await waitUntilIdle(simulation)
}

/** Starts a process; it may go down at `fault`. The one that has worked longest makes room for it. */
async function launch(
  simulation: Simulation,
  fault: Fault,
  chosen?: Pick<ProcessPlan, 'isRunning'>,
): Promise<SimulatedProcess> {
  const { dice, database } = simulation
  if (simulation.processes.length >= PROCESSES) {
    simulation.processes[0]!.kill()
    await bury(simulation)
  }
  const caps = { concurrency: dice.pick([20, 60, 200]), perWebhook: dice.pick([3, 10, 40]) }
  const parts = { rowsOfEvent: simulation.rowsOfEvent, partRows: dice.pick([3, 10, 30]) }
  const afterPosts = dice.between(0, 30)
  const workerId = `worker-${dice.between(1, 1e9)}`
  const answer: Answer = (request, process, wasHeld) => answerPost(simulation, request, { process, wasHeld })
  const onError = (line: string) => simulation.faults.push(line)
  const deps = { ...simulation, connectionString: database.connectionString, answer, onError }
  const isRunning = dice.chance(0.5)
  const process = await startProcess(deps, { workerId, fault, afterPosts, ...caps, ...parts, isRunning, ...chosen })
  simulation.processes.push(process)
  await waitUntilIdle(simulation)
  return process
}

/** Posts what is due: in a process that may go down under it, then in the others. */
export async function dispatch(simulation: Simulation, fault: Fault): Promise<void> {
  if (fault !== 'none' || simulation.processes.length === 0) await launch(simulation, fault)
  for (const process of [...simulation.processes].reverse()) {
    if (process.isLost) continue
    if (process.plan.fault === 'cut') await workWithoutLock(simulation, process)
    else await process.work()
    await settle(simulation)
  }
}

/** A process whose listening connection ends while it posts, and some time with it, in which the others look at it. */
async function workWithoutLock(simulation: Simulation, process: SimulatedProcess): Promise<void> {
  process.hold()
  const done = process.work()
  await settle(simulation)
  process.cut()
  for (let second = 0; second < simulation.dice.between(1, 8); second += 1) {
    await passTime(simulation, 1_000)
    const others = simulation.processes.filter((item) => item !== process)
    for (const other of others.slice(0, 1)) await other.work()
    await settle(simulation)
  }
  process.release()
  await done
}

/** Lets time pass. A process that works says each second that it is alive, so at the end it has just said so. */
export async function passTime(simulation: Simulation, ms: number): Promise<void> {
  simulation.clock.advance(ms)
  for (const process of simulation.processes) await process.renew()
}

/** Brings a hung process back: what it says now is late, and may be void. Then it ends. */
export async function resumeHung(simulation: Simulation): Promise<void> {
  const [process] = simulation.hung
  if (!process) return
  process.resume()
  await settle(simulation)
  simulation.hung.shift()
  process.kill()
  simulation.dead.push(process)
  await settle(simulation)
}

/** Waits until nothing is under way, and compares. */
async function settle(simulation: Simulation): Promise<void> {
  await waitUntilIdle(simulation)
  await bury(simulation)
  await compare(simulation)
}

/** Takes processes that went down out of those that work. */
async function bury(simulation: Simulation): Promise<void> {
  for (const process of simulation.processes.filter((item) => item.isLost))
    (process.isHung ? simulation.hung : simulation.dead).push(process)
  simulation.processes = simulation.processes.filter((item) => !item.isLost)
  await waitUntilIdle(simulation)
}

/** How long the work of one step may take. */
const IDLE_LIMIT_MS = 60_000

/** Waits until no statement runs: the server may still run those of a process that went down. */
async function waitUntilIdle(simulation: Simulation): Promise<void> {
  const { pool } = simulation.database
  const startedAt = performance.now()
  for (let quiet = 0; quiet < 6; ) {
    if (performance.now() - startedAt > IDLE_LIMIT_MS)
      throw new Error(
        `never idle: ${[...simulation.processes, ...simulation.hung].map((item) => item.describe()).join('; ')}`,
      )
    const isIdle = pool.idleCount === pool.totalCount && pool.waitingCount === 0
    const isQuiet = isIdle && [...simulation.processes, ...simulation.hung].every((item) => item.isIdle())
    quiet = isQuiet ? quiet + 1 : 0
    // While the server works, the processor is its own; a turn of the event loop is enough to see that nothing follows.
    await new Promise((resolve) => (isQuiet ? setImmediate(resolve) : setTimeout(resolve, 1)))
  }
  while (simulation.dead.length > 0) {
    const names = simulation.dead.map((item) => item.plan.workerId)
    const { rows } = await pool.query('select from pg_stat_activity where application_name = any($1) limit 1', [names])
    if (rows.length === 0) simulation.dead = []
  }
}
