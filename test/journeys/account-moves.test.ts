import { expect, test } from 'vitest'
import { buildKeyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'
import { insertReplayJob } from '../../src/webhook/replay/replay-job.store.ts'
import { REPLAYS_ON_THEIR_WAY_LIMIT } from '../../src/webhook/replay/replay-job-worker.ts'
import { TEST_SECRETS } from '../harness/app/test-secrets.ts'
import { type CellsUnderTest, startCellsUnderTest } from '../harness/carriage/cells-under-test.ts'
import { followArrivals } from '../harness/carriage/crossing-traffic.ts'
import { buildLogEnvironment, registerEventType } from '../harness/carriage/event-log-service.ts'
import {
  hurryRetries,
  idsOf,
  isWaitingFor,
  lockTable,
  loseProcess,
  type MovedTraffic,
  startTraffic,
} from '../harness/carriage/moved-traffic.ts'
import type { TestDatabase } from '../harness/database/database.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import type { Receiver } from '../harness/fakes/receiver.ts'
import { findNatsServer } from '../harness/nats/nats-program.ts'
import { startNatsServers } from '../harness/nats/nats-servers.ts'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { startProcess, type TestProcess } from '../harness/process/process.ts'
import { buildServiceEnvironment, type ServiceProcess } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const program = await findNatsServer('moves of accounts are tested without processes alone')
const FAR = { limitMs: 180_000 }

/** Deliveries that a bulk replay goes through while the account moves. */
const REPLAYED = REPLAYS_ON_THEIR_WAY_LIMIT + 40

type Caller = Pick<ServiceProcess, 'call'>

/** Home and a cell with two processes, and an account with a webhook, one that pulls, and a global one. */
interface Ground {
  cells: CellsUnderTest
  cell: TestDatabase
  fixture: DeliveryFixture
  env: Record<string, string>
  /** Serves the client in the process of the tests; it stays. */
  kept: Caller
  /** Works beside it, until it is killed. */
  killed: ServiceProcess
  ofAccount: Receiver
  ofAll: Receiver
  push: string
  pull: string
}

const answer = (status: number) => ({ kind: 'status', status }) as const

/** Every third of the next attempts fails, so that deliveries with retries move too. */
const failSome = (receiver: Receiver) =>
  receiver.behaveNext(...Array.from({ length: 30 }, (_, n) => answer(n % 3 === 0 ? 500 : 200)))

async function listTypes({ call }: Caller): Promise<string[]> {
  const names = ['contract.create', 'invoice.create'].map((name) => `filters=internal%7Cin%7C${name}`)
  const ids: string[] = []
  for (const name of names) {
    const found = await call('GET', `/api/v3/webhook/event?${name}`)
    ids.push(...found.body.data.map((event: { document_id: string }) => event.document_id))
  }
  return ids
}

async function subscribe({ call }: Caller, body: object, events: readonly string[]): Promise<string> {
  const made = await call('POST', '/api/v3/webhook/webhook', body)
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  const id = made.body.data.document_id as string
  const set = await call('PUT', `/api/v3/webhook/webhook/${id}/events`, { events })
  expect(set.status, JSON.stringify(set.body)).toBe(200)
  return id
}

async function openGround(cells: CellsUnderTest, fixture: DeliveryFixture, natsUrl: string): Promise<Ground> {
  const [ofAccount, ofAll] = [await fixture.receive(), await fixture.receive()]
  const env = buildLogEnvironment(natsUrl)
  const [kept, killed] = await Promise.all([fixture.startLocal({ env }), fixture.start({ env })])
  await cells.add({}, { keyring: buildKeyring(TEST_SECRETS.secretKey, systemRandom) })
  const cell = cells.open(cells.cell)
  await waitFor(
    'the workers of both processes in the cell',
    async () => ((await cell.pool.query('select from delivery_worker')).rowCount ?? 0) >= 2,
    FAR,
  )
  await registerEventType(kept)
  const [contracts = '', invoices = ''] = await listTypes(kept)
  const { account } = fixture
  const all = [contracts, invoices]
  await subscribe(kept, { url: `${ofAll.origin}/`, is_global: true, name: 'Global' }, all)
  const push = await subscribe(kept, { url: `${ofAccount.origin}/`, account, name: 'Pushed' }, all)
  const pull = await subscribe(kept, { mode: 'pull', account, name: 'Pulled' }, [invoices])
  return { cells, cell, fixture, env, kept, killed, ofAccount, ofAll, push, pull }
}

/** Starts `signalbox account move` as a process. */
const startMove = async ({ cells, fixture, env }: Ground, ...args: string[]) =>
  startProcess({
    args: [await bundleProgram(), 'account', 'move', fixture.account, ...args],
    env: { ...buildServiceEnvironment(cells.home), ...env },
  })

/** Runs `signalbox account move` to its end, in the process of the tests. */
async function finishMove({ cells, fixture, env }: Ground, ...args: string[]): Promise<void> {
  const moved = await runCommand(['account', 'move', fixture.account, ...args], {
    env: { ...buildServiceEnvironment(cells.home), ...env },
  })
  expect(moved, moved.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('Moved, with') })
}

/** Kills a move with SIGKILL. The next one need not wait for the end of its lease. */
async function killMove({ cells: { homeDb } }: Ground, move: TestProcess): Promise<void> {
  await move.kill()
  const { rowCount } = await homeDb.pool.query(`update account_move set lease_until = now() - interval '1 s'`)
  expect(rowCount).toBe(1)
}

async function pullSome({ kept, pull }: Ground, max: number) {
  const { body } = await kept.call('POST', `/api/v3/webhook/webhook/${pull}/pull`, { max, lease_seconds: 120 })
  const deliveries = body.data.deliveries as { receipt: string; body: string }[]
  return { receipts: deliveries.map(({ receipt }) => receipt), ids: deliveries.map((each) => JSON.parse(each.body).id) }
}

async function acknowledge({ kept, pull }: Ground, receipts: readonly string[]): Promise<void> {
  const ended = await kept.call('POST', `/api/v3/webhook/webhook/${pull}/ack`, { receipts })
  expect(ended.status, JSON.stringify(ended.body)).toBe(200)
  expect(ended.body.data.receipts.length).toBe(receipts.length)
}

/** Delivers events, for a bulk replay. Returns their ids. */
async function deliverSeeds({ fixture, cells: { homeDb }, push, ofAccount }: Ground): Promise<string[]> {
  await fixture.recordEvents(REPLAYED)
  const select = `select from webhook_dispatch where webhook = $1 and status = 'success'`
  await waitFor('first deliveries', async () => (await homeDb.pool.query(select, [push])).rowCount === REPLAYED, FAR)
  return [...new Set(idsOf(ofAccount))]
}

/** Begins a bulk replay of the deliveries of these events, and waits until as many as may be are on their way. */
async function beginReplay({ fixture, cells: { homeDb }, push }: Ground, seeds: readonly string[]): Promise<void> {
  const { rows } = await homeDb.pool.query(
    'select document_id as id from webhook_dispatch where webhook = $1 and event_id = any($2)',
    [push, seeds],
  )
  expect(rows).toHaveLength(REPLAYED)
  const [job] = (await homeDb.pool.query('select gen_random_uuid() as id')).rows
  await insertReplayJob(homeDb.db, {
    ...{ id: job.id, filters: [`webhook|eq|${push}`], confirmDuplicate: true, by: null, now: new Date() },
    ...{ accounts: [fixture.account as never], dispatches: rows.map(({ id }) => id) },
  })
  await waitFor(
    'a replay under way',
    async () => (await homeDb.pool.query('select from replay_job where processed > 0')).rowCount === 1,
    FAR,
  )
}

/** Moves the account to the cell. The process of the move is killed while it drains, copies and switches. */
async function moveThere(ground: Ground, seeds: readonly string[]): Promise<string[]> {
  const { cells, cell, ofAccount } = ground
  const pulled = await waitFor(
    'a lease',
    async () => {
      const some = await pullSome(ground, 5)
      return some.receipts.length > 0 && some
    },
    FAR,
  )
  const answered = Promise.withResolvers<void>()
  ofAccount.behave({ kind: 'wait', until: answered.promise })
  await beginReplay(ground, seeds)
  const draining = await startMove(ground, 'one')
  await draining.waitForOutput(/drain: waits \(await-attempts\)/, FAR.limitMs)
  await killMove(ground, draining)
  ofAccount.behave(answer(200))
  answered.resolve()

  const copied = await lockTable(cell, 'webhook_dispatch_ended')
  const copying = await startMove(ground)
  await copying.waitForOutput(/drain/, FAR.limitMs)
  await acknowledge(ground, pulled.receipts)
  await waitFor('a copy that waits', () => isWaitingFor(cell, 'webhook_dispatch_ended'), FAR)
  await killMove(ground, copying)
  await copied.release()

  const directed = await lockTable(cells.homeDb, 'account_cell')
  const switching = await startMove(ground)
  await waitFor('a switch that waits', () => isWaitingFor(cells.homeDb, 'account_cell'), FAR)
  const { rows } = await cells.homeDb.pool.query('select processed < total as is_under_way from replay_job')
  expect(rows).toEqual([{ is_under_way: true }])
  await killMove(ground, switching)
  await directed.release()

  await finishMove(ground)
  return pulled.ids
}

/** Kills a process that works on home and on the cell, in the middle of its attempts. */
async function killProcess({ cells, cell, killed, ofAccount }: Ground): Promise<void> {
  const before = ofAccount.requests.length
  ofAccount.behave({ kind: 'hang' })
  await waitFor('attempts under way', () => ofAccount.requests.length >= before + 4, FAR)
  await killed.kill()
  ofAccount.behave(answer(200))
  for (const database of [cells.homeDb, cell]) await loseProcess(database, killed.pid)
}

/** Pulls and acknowledges until nothing waits. Returns the ids of the events. */
async function pullRest(ground: Ground, wanted: ReadonlySet<string>): Promise<void> {
  const got = new Set<string>()
  await waitFor(
    'all pulled deliveries',
    async () => {
      const { receipts, ids } = await pullSome(ground, 100)
      if (receipts.length > 0) await acknowledge(ground, receipts)
      for (const id of ids) got.add(id)
      return wanted.difference(got).size === 0
    },
    { ...FAR, describe: () => `${wanted.difference(got).size} are missing` },
  )
}

/** Every event of the account arrived, and no delivery was posted more than five times. */
async function checkArrival(ground: Ground, traffic: MovedTraffic, seeds: readonly string[]): Promise<void> {
  const { cells, cell, fixture, ofAccount, ofAll } = ground
  const { rows } = await cells.homeDb.pool.query<{ id: string }>(
    `select document_id as id from event_occurrence where account = $1 and event in ('contract.create', 'invoice.create')`,
    [fixture.account],
  )
  const recorded = new Set(rows.map(({ id }) => id))
  expect(new Set(traffic.accepted.published).difference(recorded)).toEqual(new Set())
  expect(recorded.size).toBe(traffic.accepted.published.length + traffic.accepted.contracts.length + seeds.length)
  for (const receiver of [ofAccount, ofAll]) {
    const arrivals = followArrivals([receiver])
    const missing = () => recorded.difference(arrivals.ids())
    await waitFor(
      'every event',
      async () => {
        for (const database of [cells.homeDb, cell]) await hurryRetries(database, fixture.account)
        return missing().size === 0
      },
      { ...FAR, describe: () => `${missing().size} are missing` },
    )
  }
  await waitFor(
    'the end of every delivery',
    async () => {
      await hurryRetries(cells.homeDb, fixture.account)
      // Between its parts nothing of a bulk replay is open.
      if ((await cells.homeDb.pool.query(`select from replay_job where status = 'running'`)).rowCount !== 0)
        return false
      const open = 'select from webhook_dispatch_open where webhook = $1'
      return (await cells.homeDb.pool.query(open, [ground.push])).rowCount === 0
    },
    FAR,
  )
  const posts = Map.groupBy(ofAccount.requests, ({ headers }) => headers['x-service-delivery'])
  expect(Math.max(...[...posts.values()].map((requests) => requests.length))).toBeLessThanOrEqual(5)
  expect(
    Math.max(...ofAccount.requests.map(({ headers }) => Number(headers['x-service-attempt']))),
  ).toBeLessThanOrEqual(5)
  const counts = Map.groupBy(idsOf(ofAccount), (id) => id)
  expect(seeds.filter((id) => (counts.get(id)?.length ?? 0) < 2)).toEqual([])
}

test('an account moves to a cell and home under traffic, while the move and a process are killed, and every event arrives', async () => {
  if (!program) return
  await using nats = await startNatsServers({ program, size: 1 })
  await using cells = await startCellsUnderTest()
  await using fixture = await openDeliveryFixture(cells.homeDb)
  const ground = await openGround(cells, fixture, nats.url)
  const { cell, kept, ofAccount } = ground
  const seeds = await deliverSeeds(ground)
  failSome(ofAccount)
  const traffic = startTraffic({ call: kept.call, account: fixture.account, cell, receiver: ofAccount })
  await traffic.waitForMore(10)

  const pulled = await moveThere(ground, seeds)
  expect(traffic.refusals()).toBeGreaterThan(0)
  await traffic.waitForMore(10)
  await hurryRetries(cell, fixture.account)
  await killProcess(ground)
  failSome(ofAccount)
  await traffic.waitForMore(20)

  await finishMove(ground, 'home')
  await traffic.waitForMore(10)
  await traffic.stop()
  await pullRest(ground, new Set(traffic.accepted.published).difference(new Set(pulled)))
  await checkArrival(ground, traffic, seeds)
  const { rows } = await cells.homeDb.pool.query('select status, replayed, skipped from replay_job')
  expect(rows).toEqual([{ status: 'done', replayed: REPLAYED, skipped: 0 }])
  expect((await cells.homeDb.pool.query('select from account_move')).rowCount).toBe(0)
}, 900_000)
