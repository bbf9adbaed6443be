import pino from 'pino'
import { openBreakingDatabase, WORKER_POOL } from '../../../test/harness/database/breaking-database.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { describeQueue } from '../../../test/harness/delivery/queue-conformance.ts'
import type { AttemptEnd, QueueUnderTest } from '../../../test/harness/delivery/queue-under-test.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { WebhookId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { buildSecretCache } from '../../delivery/post/secret-cache.ts'
import { type Database, openDatabase } from '../../postgres/statement/database.ts'
import { buildContextTracer } from '../../tracing/tracer.ts'
import { buildHeaderCache } from '../registry/own-headers.ts'
import { buildSigningKeyCache } from '../registry/signing-key.ts'
import { secretContextOf } from '../registry/webhook.ts'
import type { ClaimedDispatch } from './claimed-work.ts'
import type { EndedAttempt } from './outcome.ts'
import type { SettledAttempts } from './settle.ts'
import { buildWebhookPolicy } from './webhook-policy.ts'

const RESULTS: Record<AttemptEnd, EndedAttempt['result']> = {
  delivered: { statusCode: 204 },
  failed: { statusCode: 500 },
  interrupted: { errorClass: 'interrupted' },
}

async function openWebhookQueue(): Promise<QueueUnderTest<ClaimedDispatch, EndedAttempt, SettledAttempts>> {
  const database = await createTestDatabase()
  const { connectionString } = database
  const workers = openDatabase({ ...WORKER_POOL, connectionString, size: 8 })
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  const queueOver = (db: Database) => buildQueue(db, { ...ledger.deps, clock })
  return {
    queue: queueOver(workers.db),
    clock,
    addGroup: () => ledger.addWebhook(),
    addRows: (group, rows) => ledger.addDispatches(group as WebhookId, rows),
    setActive: async (group, isActive) => {
      const change = { is_actived: isActive }
      await database.db.updateTable('webhook').set(change).where('document_id', '=', group).execute()
    },
    end: (claimed, end) => ({
      id: claimed.id,
      fence: claimed.fence,
      attempt: claimed.attempt,
      trigger: claimed.trigger,
      isTest: claimed.isTest,
      webhook: claimed.webhook.id,
      event: claimed.event.type,
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
      const rows = database.db.selectFrom('webhook_dispatch').selectAll().where('document_id', '=', id)
      const row = await rows.executeTakeFirst()
      if (!row) return undefined
      const isOpen = row.status === 'pending' || row.status === 'retrying'
      const state = isOpen ? (row.lease_owner === null ? 'waiting' : 'claimed') : 'ended'
      return { state, attempts: row.attempts, dueAt: row.next_attempt_at }
    },
    countLogged: async (id) =>
      (await database.db.selectFrom('webhook_attempt_log').select('attempt').where('dispatch', '=', id).execute())
        .length,
    openBreaking: (point) => {
      const breaking = openBreakingDatabase(database, point)
      return { ...breaking, queue: queueOver(breaking.db) }
    },
    [Symbol.asyncDispose]: async () => {
      await workers.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

const keyring = buildKeyring(['a-secret-key-of-at-least-32-bytes-long'], systemRandom)

function buildQueue(
  db: Database,
  deps: Pick<Parameters<typeof buildWebhookPolicy>[0], 'ids' | 'workerId' | 'enableApiEventQueue' | 'clock'>,
) {
  const { queue } = buildWebhookPolicy({
    ...deps,
    db,
    logger: pino({ level: 'silent' }),
    tracer: buildContextTracer(systemRandom),
    secrets: buildSecretCache(keyring, secretContextOf),
    headers: buildHeaderCache(keyring),
    signingKeys: buildSigningKeyCache(keyring),
    sender: {
      post: () => Promise.reject(new Error('the queue posts nothing')),
      idleConnectionCount: () => 0,
      close: async () => {},
    },
    userAgent: 'Signalbox/0.0.0',
    concurrency: 100,
    perWebhook: 100,
  })
  return queue
}

describeQueue('the queue of webhooks', openWebhookQueue)
