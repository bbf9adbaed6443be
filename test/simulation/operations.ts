import type { AccountId, EventId, WebhookId } from '../../src/base/id.ts'
import { buildEvents, type EventDraft, recordEvents } from '../../src/event/occurrence/event.ts'
import { Problem } from '../../src/http/problem/problem.ts'
import { createSecret } from '../../src/outbound/signature.ts'
import { inTransaction } from '../../src/postgres/statement/database.ts'
import { deleteLedger, enqueueTest, replayDispatch } from '../../src/webhook/ledger/dispatch.ts'
import { cancelWaitingDispatches } from '../../src/webhook/ledger/removal.store.ts'
import { insertWebhook, updateWebhook } from '../../src/webhook/registry/webhook.store.ts'
import {
  deleteWebhook,
  loadWebhook,
  purgeWebhook,
  secretContextOf,
  setWebhookActive,
} from '../../src/webhook/registry/webhook.ts'
import { addRow, countStatus, type ModelWebhook } from './model.ts'
import type { SimulatedProcess } from './process.ts'
import type { Simulation } from './simulation.ts'
import { LIMITS } from './throttle.ts'

const CALLER = { userId: null } as never

/** Event types of the simulation, with their scope. */
export const EVENT_TYPES = {
  'contract.create': 'account',
  'contract.update': 'account',
  'contract.purge': 'account',
  'health.find-all': 'none',
  'webhook.test': 'none',
  'webhook.failing': 'none',
  'webhook.auto-disable': 'none',
  'webhook.recovered': 'none',
  'webhook-dispatch.exhausted': 'none',
} as const

/** Types that only the simulation itself causes. */
const CAUSED = ['contract.create', 'contract.update', 'contract.purge', 'health.find-all'] as const

/** A new webhook, global or of an account, with some of the event types. */
export async function createWebhook(simulation: Simulation): Promise<void> {
  const { dice, model, db, clock } = simulation
  const id = simulation.ids.next<'webhook'>() as WebhookId
  const account = dice.chance(0.4) ? null : dice.pick(simulation.accounts)
  const events = Object.keys(EVENT_TYPES).filter((type) => type !== 'webhook.test' && dice.chance(0.6))
  const secret = createSecret(simulation.random)
  const url = `https://receiver-${model.webhooks.size}.example.com/hook`
  const now = new Date(clock.now())
  const secretEncrypted = simulation.keyring.seal(secret, secretContextOf(id))
  const row = {
    id,
    url,
    name: null,
    description: null,
    isGlobal: account === null,
    account,
    resourceIds: null,
    headerNames: [],
    contacts: [],
    headersEncrypted: null,
    publicKey: null,
    signingKeyEncrypted: null,
    maxPerSecond: dice.pick(LIMITS),
    secretEncrypted,
    subscriptions: { ids: [], names: ['webhook.test'], links: [simulation.ids.next<'subscription'>()] },
    by: null,
    now,
  }
  await insertWebhook(db, row)
  for (const event of events) await simulation.ledger.subscribe(id, event)
  const { ordinal } = await db
    .selectFrom('webhook')
    .select('ordinal')
    .where('document_id', '=', id)
    .executeTakeFirstOrThrow()
  const webhook = {
    id,
    isGlobal: account === null,
    account,
    isActive: true,
    isDeleted: false,
    ordinal: Number(ordinal),
  }
  model.webhooks.set(id, {
    wasLimited: row.maxPerSecond !== null,
    ...webhook,
    ...{ events, url, secret, illness: pickIllness(simulation) },
    ...{ failures: 0, succeededAtMs: new Map(), failedAtMs: new Map() },
  })
}

/** Most are well, some fail now and then, some always. */
function pickIllness({ dice }: Simulation): number {
  return dice.pick([0, 0, 0.1, 0.4, 1, 1])
}

/** Events, in a transaction that commits or is rolled back (docs/contract/events.md#atomicity). */
export async function emitEvents(simulation: Simulation, count: number): Promise<EventId[]> {
  const { dice, db } = simulation
  const drafts = draftEvents(simulation, count)
  const deps = { ids: simulation.ids, enableApiEventQueue: true }
  const isRolledBack = dice.chance(0.15)
  const change = inTransaction(db, async (tx) => {
    const events = await recordEvents(deps, tx, drafts, new Date(simulation.clock.now()))
    if (isRolledBack) throw new RolledBack()
    return events.map((event) => event.id)
  })
  return change.catch((error: unknown) => {
    if (error instanceof RolledBack) return []
    throw error
  })
}

class RolledBack extends Error {}

function draftEvents({ dice, accounts }: Simulation, count: number): EventDraft[] {
  return Array.from({ length: count }, (): EventDraft => {
    const event = dice.pick(CAUSED)
    const [resource = '', action = ''] = event.split('.')
    const account = dice.chance(0.9) ? dice.pick(accounts) : (null as AccountId | null)
    return { type: event, accountScope: EVENT_TYPES[event], account, resource, action, resourceId: null, url: null }
  })
}

/** A process publishes events, which it routes as it records them if it has room. Returns their ids. */
export async function publishEvents(
  simulation: Simulation,
  process: SimulatedProcess,
  count: number,
): Promise<EventId[]> {
  const deps = { ids: simulation.ids, enableApiEventQueue: true }
  const events = buildEvents(deps, draftEvents(simulation, count), new Date(simulation.clock.now()))
  await process.publish(events)
  return events.map((event) => event.id)
}

/** One thing an operator does, to the service and to the model. */
export async function operate(simulation: Simulation): Promise<void> {
  const living = [...simulation.model.webhooks.values()].filter((webhook) => !webhook.isDeleted)
  if (living.length < 3) return createWebhook(simulation)
  const webhook = simulation.dice.pick(living)
  const now = new Date(simulation.clock.now())
  const roll = simulation.dice.between(1, 100)
  if (roll <= 12) return createWebhook(simulation)
  if (roll <= 24) return toggle(simulation, webhook, now)
  if (roll <= 33) return remove(simulation, webhook, now)
  if (roll <= 37) return purge(simulation, webhook)
  if (roll <= 46) return changeSettings(simulation, webhook, now)
  if (roll <= 58) {
    webhook.illness = pickIllness(simulation)
    return
  }
  if (roll <= 70) return sendTest(simulation, webhook, now)
  return replay(simulation, now)
}

async function toggle(simulation: Simulation, webhook: ModelWebhook, now: Date): Promise<void> {
  const isActived = simulation.dice.chance(0.7) ? !webhook.isActive : webhook.isActive
  await inTransaction(simulation.db, (tx) => setWebhookActive(tx, webhook.id, { isActived, caller: CALLER, now }))
  webhook.isActive = isActived
  if (isActived) webhook.failures = 0
}

async function remove(simulation: Simulation, webhook: ModelWebhook, now: Date): Promise<void> {
  const deps = {
    cancelWaitingDispatches: async (db: Simulation['db'], id: WebhookId, at: Date) => {
      await cancelWaitingDispatches(db, { webhook: id, workerId: 'api', now: at })
    },
  }
  await inTransaction(simulation.db, (tx) => deleteWebhook(deps, tx, webhook.id, { caller: CALLER, now }))
  webhook.isDeleted = true
  const waiting = [...simulation.model.rows.values()].filter(
    (row) => row.webhook === webhook.id && row.nextAttemptAtMs !== null && !row.isLeased,
  )
  for (const row of waiting) Object.assign(row, { status: 'cancelled', nextAttemptAtMs: null })
  countStatus(simulation.model, 'cancelled', waiting.length)
}

async function purge(simulation: Simulation, webhook: ModelWebhook): Promise<void> {
  await inTransaction(simulation.db, (tx) => purgeWebhook({ deleteLedger }, tx, webhook.id))
  simulation.model.webhooks.delete(webhook.id)
  for (const row of simulation.model.rows.values()) if (row.webhook === webhook.id) simulation.model.rows.delete(row.id)
}

async function changeSettings(simulation: Simulation, webhook: ModelWebhook, now: Date): Promise<void> {
  if (simulation.dice.chance(0.3)) {
    const maxPerSecond = simulation.dice.pick(LIMITS)
    webhook.wasLimited ||= maxPerSecond !== null
    await updateWebhook(simulation.db, webhook.id, { maxPerSecond }, now)
  } else if (simulation.dice.chance(0.5)) {
    webhook.secret = createSecret(simulation.random)
    const secretEncrypted = simulation.keyring.seal(webhook.secret, secretContextOf(webhook.id))
    await updateWebhook(simulation.db, webhook.id, { secretEncrypted }, now)
  } else {
    webhook.url = `https://moved-${simulation.dice.between(1, 1e9)}.example.com/hook`
    await updateWebhook(simulation.db, webhook.id, { url: webhook.url }, now)
  }
}

async function sendTest(simulation: Simulation, webhook: ModelWebhook, now: Date): Promise<void> {
  const deps = { ids: simulation.ids, enableApiEventQueue: true, workerId: 'api' }
  const { dispatchId, eventId } = await inTransaction(simulation.db, async (tx) =>
    enqueueTest(deps, tx, await loadWebhook(tx, webhook.id, { lock: true }), now),
  )
  addRow(simulation.model, { id: dispatchId, webhook: webhook.id, eventId, isTest: true }, now.getTime())
}

async function replay(simulation: Simulation, now: Date): Promise<void> {
  const rows = [...simulation.model.rows.values()]
  if (rows.length === 0) return
  const row = simulation.dice.pick(rows)
  const webhook = simulation.model.webhooks.get(row.webhook)
  const deps = { ids: simulation.ids, enableApiEventQueue: true, workerId: 'api' }
  const confirmDuplicate = simulation.dice.chance(0.7)
  const needsConfirmation = ['success', 'pending', 'retrying'].includes(row.status)
  const isReplayWaiting = row.status === 'retrying' && row.trigger === 'replay'
  const isFree = !row.isLeased && !isReplayWaiting && (confirmDuplicate || !needsConfirmation)
  const isAllowed = webhook?.isActive && !webhook.isDeleted && isFree
  const done = await inTransaction(simulation.db, async (tx) =>
    replayDispatch(deps, tx, row.id, { confirmDuplicate, now }),
  ).catch((error: unknown) => {
    if (error instanceof Problem) return undefined
    throw error
  })
  if ((done !== undefined) !== Boolean(isAllowed))
    simulation.faults.push(`replay of ${row.id} ${done ? 'taken' : 'refused'}`)
  if (!done) return
  const keepsSchedule = row.status === 'pending' || row.status === 'retrying'
  // A waiting row has five POSTs in all, whoever asks for the next one.
  const wasReplayed = row.wasReplayed || !keepsSchedule
  const due = {
    status: 'retrying',
    trigger: 'replay',
    nextAttemptAtMs: now.getTime(),
    wasReplayed,
    keepsSchedule,
  } as const
  Object.assign(row, due)
  webhook?.succeededAtMs.delete(row.id)
  webhook?.failedAtMs.delete(row.id)
  countStatus(simulation.model, 'retrying')
}
