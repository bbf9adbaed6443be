import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import pino from 'pino'
import { Pool } from 'undici'
import { buildApp } from '../src/app/app.ts'
import { readConfig } from '../src/app/config.ts'
import { openResources, prepareDatabase } from '../src/app/prepare.ts'
import { findEventTypesByName } from '../src/catalogue/catalogue.store.ts'
import { systemClock } from '../src/clock.ts'
import { type EventDraft, recordEvents } from '../src/event/event.ts'
import { buildIdMaker } from '../src/id.ts'
import { inTransaction } from '../src/postgres/database.ts'
import { systemRandom } from '../src/random.ts'
import { buildDeliveryHeaders, buildEnvelope } from '../src/webhook/envelope.ts'
import { replaceEventSet } from '../src/webhook/subscription.ts'
import { createWebhook } from '../src/webhook/webhook.ts'

/**
 * Deliveries a second through the whole path (an event row recorded durably, routed, claimed, signed, posted, and its
 * result recorded), beside a bare undici loop that posts the same signed body to the same sink in the same run. Prints
 * both and their ratio for each round, and the median ratio. Machines differ; the ratio is what to compare.
 *
 *   npm run bench -- [deliveries a round] [rounds]
 */

const COUNT = Number(process.argv[2] ?? 10_000)
const ROUNDS = Number(process.argv[3] ?? 3)
const BARE_CONCURRENCY = 50
const EVENTS_A_TRANSACTION = 50
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

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
async function measureBare(url: string): Promise<number> {
  const { body, headers } = buildBody()
  const pool = new Pool(new URL(url).origin, { connections: BARE_CONCURRENCY })
  let left = COUNT
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
  return COUNT / seconds
}

const sink = await startSink()
const dataDir = await mkdtemp(join(tmpdir(), 'signalbox bench '))
const config = readConfig(
  {
    APP_ENV: 'development',
    PORT: '0',
    SIGNALBOX_DATA_DIR: dataDir,
    SIGNALBOX_ROLES: 'dispatcher',
    WEBHOOK_ALLOWED_PRIVATE_TARGETS: new URL(sink.url).host,
    WEBHOOK_CONCURRENCY_PER_WEBHOOK: '256',
  },
  dataDir,
)
const logger = pino({ level: 'error' })
const world = { config, clock: systemClock, random: systemRandom, logger }
const ground = await openResources(world)
await prepareDatabase(ground, world)
const { db } = ground.database
const app = await buildApp({
  ...world,
  secrets: ground.secrets,
  database: ground.database,
  connectionString: ground.connectionString,
  lookup: async () => [],
})
await subscribeSink()
await app.start()

async function subscribeSink(): Promise<void> {
  const deps = {
    ids: app.ids,
    random: systemRandom,
    keyring: app.keyring,
    callbackRules: app.callbackRules,
    lookup: async () => [],
    checkAccountExists: () => Promise.reject(new Error('no accounts here')),
    findExistingAccounts: async () => new Set<string>(),
    cancelWaitingDispatches: async () => {},
    deleteLedger: async () => {},
  }
  const now = new Date(systemClock.now())
  await inTransaction(db, async (tx) => {
    const input = { url: sink.url, name: 'bench', description: null, isGlobal: true, account: null, caller: null, now }
    const { webhook } = await createWebhook(deps, tx, input)
    const events = await findEventTypesByName(tx, ['contract.update'])
    await replaceEventSet(deps, tx, webhook, { events: events.map((event) => event.id), now })
  })
}

async function countSuccess(): Promise<number> {
  const row = await db
    .selectFrom('webhook_delivery_total')
    .select((eb) => eb.fn.sum<string>('deliveries').as('n'))
    .where('status', '=', 'success')
    .executeTakeFirst()
  return Number(row?.n ?? 0)
}

/** Deliveries a second through the whole path. */
async function measurePath(): Promise<number> {
  const before = await countSuccess()
  const startedAt = performance.now()
  const draft = (): EventDraft => ({
    event: 'contract.update',
    accountScope: 'account',
    account: null,
    resource: 'contract',
    action: 'update',
    resourceId: app.ids.next<'contract'>(),
    url: null,
  })
  const deps = { ids: app.ids, enableApiEventQueue: true }
  for (let recorded = 0; recorded < COUNT; recorded += EVENTS_A_TRANSACTION) {
    const drafts = Array.from({ length: Math.min(EVENTS_A_TRANSACTION, COUNT - recorded) }, draft)
    await inTransaction(db, (tx) => recordEvents(deps, tx, drafts, new Date(systemClock.now())))
    app.router.notify()
  }
  while ((await countSuccess()) < before + COUNT) await systemClock.sleep(20)
  return COUNT / ((performance.now() - startedAt) / 1000)
}

const ratios: number[] = []
await measureBare(sink.url)
for (let round = 1; round <= ROUNDS; round += 1) {
  const bare = await measureBare(sink.url)
  const path = await measurePath()
  ratios.push(path / bare)
  console.log(
    `round ${round}: whole path ${Math.round(path)} deliveries/s, bare undici loop ${Math.round(bare)} POSTs/s, ratio ${(path / bare).toFixed(3)}`,
  )
}
ratios.sort((a, b) => a - b)
console.log(
  `median ratio ${ratios[Math.floor(ratios.length / 2)]?.toFixed(3)} (${COUNT} deliveries a round, ${ROUNDS} rounds)`,
)
await app.stop()
await ground.close()
sink.stop()
await rm(dataDir, { recursive: true, force: true })
