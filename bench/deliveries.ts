import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import pino from 'pino'
import { Pool } from 'undici'
import { type App, buildApp } from '../src/app/app.ts'
import { readConfig } from '../src/app/config.ts'
import { openResources, prepareDatabase, type Resources } from '../src/app/prepare.ts'
import { findEventTypesByName } from '../src/catalogue/catalogue.store.ts'
import { systemClock } from '../src/clock.ts'
import { type EventDraft, recordEvents } from '../src/event/event.ts'
import { buildIdMaker } from '../src/id.ts'
import { inTransaction } from '../src/postgres/database.ts'
import { systemRandom } from '../src/random.ts'
import { buildDeliveryHeaders, buildEnvelope } from '../src/webhook/envelope.ts'
import { replaceEventSet } from '../src/webhook/subscription.ts'
import { createWebhook } from '../src/webhook/webhook.ts'

const BARE_CONCURRENCY = 50
const EVENTS_A_TRANSACTION = 50
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/**
 * Measures deliveries a second through the whole path (an event row recorded durably, routed, claimed, signed, posted,
 * and its result recorded), beside a bare undici loop that posts the same signed body to the same sink in the same run.
 * Prints both and their ratio for each round, and the median ratio. Machines differ; the ratio is what to compare.
 */
export async function measureDeliveries({ count, rounds }: { count: number; rounds: number }): Promise<void> {
  const sink = await startSink()
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox bench '))
  const { resources, app } = await startService(dataDir, sink.url)
  const ratios: number[] = []
  await measureBare(sink.url, count)
  for (let round = 1; round <= rounds; round += 1) {
    const bare = await measureBare(sink.url, count)
    const path = await measurePath(app, resources, count)
    ratios.push(path / bare)
    console.log(
      `round ${round}: whole path ${Math.round(path)} deliveries/s, bare undici loop ${Math.round(bare)} POSTs/s, ratio ${(path / bare).toFixed(3)}`,
    )
  }
  ratios.sort((a, b) => a - b)
  console.log(
    `median ratio ${ratios[Math.floor(ratios.length / 2)]?.toFixed(3)} (${count} deliveries a round, ${rounds} rounds)`,
  )
  await app.stop()
  await resources.close()
  sink.stop()
  await rm(dataDir, { recursive: true, force: true })
}

function startSink(): Promise<{ url: string; stop: () => void }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'sink.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return new Promise((resolve) => {
    createInterface({ input: child.stdout }).once('line', (port) =>
      resolve({ url: `http://127.0.0.1:${port}/`, stop: () => child.kill() }),
    )
  })
}

function buildBody() {
  const ids = buildIdMaker(systemClock, systemRandom)
  const id = ids.next<'event'>()
  const event = {
    id,
    type: 'contract.update',
    createdAt: new Date(),
    account: ids.next<'account'>(),
    resource: 'contract',
    action: 'update',
    resourceId: ids.next<'contract'>(),
    url: `/api/v3/contract/contract/${id}`,
  }
  const body = buildEnvelope({ event, attempt: 1 })
  const headers = buildDeliveryHeaders({
    version: '0',
    secret: SECRET,
    eventId: id,
    eventType: event.type,
    dispatchId: id,
    attempt: 1,
    timestampSeconds: 1_800_000_000,
    body,
  })
  return { body, headers }
}

/** POSTs a second of a bare undici pool. */
async function measureBare(url: string, count: number): Promise<number> {
  const { body, headers } = buildBody()
  const pool = new Pool(new URL(url).origin, { connections: BARE_CONCURRENCY })
  let left = count
  const startedAt = performance.now()
  const loop = async () => {
    while (left-- > 0) {
      const response = await pool.request({ method: 'POST', path: '/', headers, body })
      await response.body.dump()
    }
  }
  await Promise.all(Array.from({ length: BARE_CONCURRENCY }, loop))
  const seconds = (performance.now() - startedAt) / 1000
  await pool.close()
  return count / seconds
}

/** The service in this process, its dispatcher alone, with the sink as its only subscriber. */
async function startService(dataDir: string, sinkUrl: string): Promise<{ resources: Resources; app: App }> {
  const config = readConfig(
    {
      APP_ENV: 'development',
      PORT: '0',
      SIGNALBOX_DATA_DIR: dataDir,
      SIGNALBOX_ROLES: 'dispatcher',
      WEBHOOK_ALLOWED_PRIVATE_TARGETS: new URL(sinkUrl).host,
      WEBHOOK_CONCURRENCY_PER_WEBHOOK: '256',
    },
    dataDir,
  )
  const logger = pino({ level: 'error' })
  const world = { config, clock: systemClock, random: systemRandom, logger }
  const resources = await openResources(world)
  await prepareDatabase(resources, world)
  const app = await buildApp({
    ...world,
    secrets: resources.secrets,
    database: resources.database,
    connectionString: resources.connectionString,
    lookup: async () => [],
  })
  await subscribeSink(app, resources, sinkUrl)
  await app.start()
  return { resources, app }
}

async function subscribeSink(app: App, resources: Resources, url: string): Promise<void> {
  const deps = {
    ids: app.ids,
    random: systemRandom,
    keyring: app.keyring,
    callbackRules: app.callbackRules,
    lookup: async () => [],
    checkAccountExists: () => Promise.reject(new Error('no accounts here')),
    cancelWaitingDispatches: async () => {},
    deleteLedger: async () => {},
  }
  const now = new Date(systemClock.now())
  await inTransaction(resources.database.db, async (tx) => {
    const input = { url, name: 'bench', description: null, isGlobal: true, account: null, caller: null, now }
    const { webhook } = await createWebhook(deps, tx, input)
    const events = await findEventTypesByName(tx, ['contract.update'])
    await replaceEventSet(deps, tx, webhook.id, { events: events.map((event) => event.id), now })
  })
}

async function countSuccess({ database }: Resources): Promise<number> {
  const row = await database.db
    .selectFrom('webhook_delivery_total')
    .select((eb) => eb.fn.sum<string>('deliveries').as('n'))
    .where('status', '=', 'success')
    .executeTakeFirst()
  return Number(row?.n ?? 0)
}

/** Deliveries a second through the whole path. */
async function measurePath(app: App, resources: Resources, count: number): Promise<number> {
  const before = await countSuccess(resources)
  const startedAt = performance.now()
  const draft = (): EventDraft => ({
    type: 'contract.update',
    accountScope: 'account',
    account: null,
    resource: 'contract',
    action: 'update',
    resourceId: app.ids.next<'contract'>(),
    url: null,
  })
  const deps = { ids: app.ids, enableApiEventQueue: true }
  for (let recorded = 0; recorded < count; recorded += EVENTS_A_TRANSACTION) {
    const drafts = Array.from({ length: Math.min(EVENTS_A_TRANSACTION, count - recorded) }, draft)
    await inTransaction(resources.database.db, (tx) => recordEvents(deps, tx, drafts, new Date(systemClock.now())))
    app.router.notify()
  }
  while ((await countSuccess(resources)) < before + count) await systemClock.sleep(20)
  return count / ((performance.now() - startedAt) / 1000)
}
