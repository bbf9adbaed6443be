import pino from 'pino'
import { openBreakingDatabase, WORKER_POOL } from '../../../test/harness/database/breaking-database.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { describeQueue } from '../../../test/harness/delivery/queue-conformance.ts'
import type { AttemptEnd, QueueUnderTest } from '../../../test/harness/delivery/queue-under-test.ts'
import { buildManualClock, type ManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildIdMaker, type EventId, type IdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { type Database, openDatabase } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { MAX_MESSAGE_ATTEMPTS, type MessageResult } from '../provider/outcome.ts'
import type { ClaimedMessage } from './claimed-message.ts'
import { buildRealtimePolicy, type EndedMessage, type RecordedMessage } from './realtime-policy.ts'

const RESULTS: Record<AttemptEnd, MessageResult> = {
  delivered: { kind: 'ok', body: {} },
  failed: { kind: 'failed', statusCode: 503, errorClass: 'http_5xx' },
  interrupted: { kind: 'interrupted' },
}

const addMessages = statement<never, { ids: readonly EventId[]; account: string; now: Date; dueAt: Date }>(`
  with events as (
    insert into event_occurrence (document_id, event, account, resource, action, created_at)
    select id, 'contract.create', $account, 'contract', 'create', $now::timestamptz from unnest($ids::uuid[]) as x (id)
  ), messages as (
    insert into realtime_message_open (document_id, account, event, next_attempt_at, created_at, updated_at)
    select id, $account, 'contract.create', $dueAt::timestamptz, $now, $now from unnest($ids::uuid[]) as x (id)
  )
  insert into realtime_queue (account, visit_at) values ($account, $dueAt)
  on conflict (account) do update set visit_at = least(realtime_queue.visit_at, excluded.visit_at)`)

async function openRealtimeQueue(): Promise<QueueUnderTest<ClaimedMessage, EndedMessage, RecordedMessage[]>> {
  const database = await createTestDatabase()
  const { connectionString } = database
  const workers = openDatabase({ ...WORKER_POOL, connectionString, size: 8 })
  const clock = buildManualClock()
  // Messages have the order of their ids: what is due earlier happened earlier.
  const makers = new Map<number, IdMaker>()
  const makerOf = (ms: number) => makers.getOrInsertComputed(ms, () => buildIdMaker({ now: () => ms }, systemRandom))
  const queueOver = (db: Database) => buildQueue(db, clock)
  return {
    queue: queueOver(workers.db),
    clock,
    addGroup: async () => makerOf(0).next(),
    addRows: async (group, { count = 1, dueAt = new Date(clock.now()) } = {}) => {
      const ids = Array.from({ length: count }, () => makerOf(dueAt.getTime()).next<'event'>())
      await addMessages(workers.db, { ids, account: group, now: new Date(clock.now()), dueAt })
      return ids
    },
    end: ({ id, fence, attempt, account, event }, end) => ({
      ...{ id, fence, attempt, account, event: event.type, endedAt: new Date(clock.now()), durationMs: 1 },
      result: RESULTS[end],
    }),
    listRecorded: (settled) => settled.filter((result) => result.isRecorded).map((result) => result.ended.id),
    readRow: async (id) => {
      const ended = database.db.selectFrom('realtime_message_ended').selectAll().where('document_id', '=', id)
      const gone = await ended.executeTakeFirst()
      if (gone) return { state: 'ended', attempts: gone.attempts, dueAt: null }
      const open = database.db.selectFrom('realtime_message_open').selectAll().where('document_id', '=', id)
      const row = await open.executeTakeFirst()
      const state = row?.lease_owner === null ? 'waiting' : 'claimed'
      return row && { state, attempts: row.attempts, dueAt: row.next_attempt_at }
    },
    countLogged: async (id) => {
      const rows = database.db.selectFrom('realtime_message').select('results').where('document_id', '=', id)
      return (await rows.executeTakeFirstOrThrow()).results ?? 0
    },
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

function buildQueue(db: Database, clock: ManualClock) {
  const publisher = {
    publish: () => Promise.reject(new Error('the queue publishes nothing')),
    resume: () => {},
    interrupt: () => {},
  }
  return buildRealtimePolicy({ db, clock, logger: pino({ level: 'silent' }), publisher }).queue
}

describeQueue('the queue of realtime messages', openRealtimeQueue, { attempts: MAX_MESSAGE_ATTEMPTS, isOrdered: true })
