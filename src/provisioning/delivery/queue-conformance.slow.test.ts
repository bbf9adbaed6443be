import pino from 'pino'
import { openBreakingDatabase, WORKER_POOL } from '../../../test/harness/database/breaking-database.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { describeQueue } from '../../../test/harness/delivery/queue-conformance.ts'
import type { AttemptEnd, QueueUnderTest } from '../../../test/harness/delivery/queue-under-test.ts'
import { buildProvisioningLedger } from '../../../test/harness/provisioning/provisioning-ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { UserId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { buildSecretCache } from '../../delivery/post/secret-cache.ts'
import { type Database, openDatabase } from '../../postgres/statement/database.ts'
import { buildContextTracer } from '../../tracing/tracer.ts'
import type { ClaimedDelivery, DeliveryId } from '../claim/claimed-delivery.ts'
import { MAX_PROVISIONING_ATTEMPTS } from '../claim/outcome.ts'
import type { TargetId } from '../target/target.store.ts'
import { targetSecretContextOf } from '../target/target.ts'
import { buildProvisioningPolicy } from './provisioning-policy.ts'
import type { EndedDelivery, SettledDeliveries } from './settle.ts'

const RESULTS: Record<AttemptEnd, EndedDelivery['result']> = {
  delivered: { statusCode: 204 },
  failed: { statusCode: 500 },
  interrupted: { errorClass: 'interrupted' },
}

async function openProvisioningQueue(): Promise<QueueUnderTest<ClaimedDelivery, EndedDelivery, SettledDeliveries>> {
  const database = await createTestDatabase()
  const { connectionString } = database
  const workers = openDatabase({ ...WORKER_POOL, connectionString, size: 8 })
  const clock = buildManualClock()
  const ledger = buildProvisioningLedger(database.db, clock)
  return {
    queue: buildQueue(workers.db, clock),
    clock,
    addGroup: () => ledger.addTarget(),
    // Rows of one user wait for each other, so each row here has a user of its own.
    addRows: (group, { count = 1, dueAt } = {}) => ledger.queueNewUsers(group as TargetId, count, dueAt),
    setActive: async (group, isActive) => {
      const change = { is_actived: isActive }
      await database.db.updateTable('provisioning_target').set(change).where('document_id', '=', group).execute()
    },
    end: (claimed, end) => ({
      id: claimed.id,
      fence: claimed.fence,
      attempt: claimed.attempt,
      trigger: claimed.trigger,
      target: claimed.target.id,
      generation: claimed.target.generation,
      user: claimed.change.user.id,
      type: claimed.change.type,
      workerId: 'worker-a',
      traceId: null,
      startedAt: ledger.now(),
      endedAt: ledger.now(),
      durationMs: 1,
      result: RESULTS[end],
      responseExcerpt: null,
      responseHeaders: null,
      timings: null,
    }),
    listRecorded: ({ recorded }) => recorded.filter((result) => result.isRecorded).map((result) => result.attempt.id),
    readRow: async (id) => {
      const row = await ledger.readDelivery(id as DeliveryId).catch(() => undefined)
      if (!row) return undefined
      const stream = await ledger.readStream(row.target as TargetId, row.user_id as UserId)
      const state = row.ended_at ? 'ended' : stream.claimed === id ? 'claimed' : 'waiting'
      return { state, attempts: row.attempts, dueAt: state === 'waiting' ? stream.due_at : null }
    },
    countLogged: async (id) =>
      (await database.db.selectFrom('provisioning_attempt').select('attempt').where('delivery', '=', id).execute())
        .length,
    openBreaking: (point) => {
      const breaking = openBreakingDatabase(database, point)
      return { ...breaking, queue: buildQueue(breaking.db, clock) }
    },
    [Symbol.asyncDispose]: async () => {
      await workers.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

function buildQueue(db: Database, clock: ReturnType<typeof buildManualClock>) {
  const keyring = buildKeyring(['a-secret-key-of-at-least-32-bytes-long'], systemRandom)
  const { ids } = buildProvisioningLedger(db, clock)
  const { queue } = buildProvisioningPolicy({
    db,
    clock,
    ids,
    random: systemRandom,
    workerId: 'worker-a',
    enableApiEventQueue: true,
    logger: pino({ level: 'silent' }),
    tracer: buildContextTracer(systemRandom),
    secrets: buildSecretCache(keyring, targetSecretContextOf),
    sender: {
      post: () => Promise.reject(new Error('the queue posts nothing')),
      idleConnectionCount: () => 0,
      close: async () => {},
    },
    userAgent: 'Signalbox/0.0.0',
    scim: {
      fetch: () => Promise.reject(new Error('the queue requests nothing')),
      now: () => 0,
      openToken: () => '',
      isHeldByOther: () => Promise.reject(new Error('the queue asks nothing')),
      userAgent: 'test',
    },
    concurrency: 100,
    perTarget: 100,
  })
  return queue
}

describeQueue('the queue of provisioning', openProvisioningQueue, { attempts: MAX_PROVISIONING_ATTEMPTS })
