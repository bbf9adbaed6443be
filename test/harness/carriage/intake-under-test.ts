import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import type { AccountId, EventId } from '../../../src/base/id.ts'
import { beginIntake } from '../../../src/carriage/cell/reference.store.ts'
import { findIntakeFacts } from '../../../src/carriage/intake/intake.store.ts'
import { buildIntake, type IntakeDeps } from '../../../src/carriage/intake/intake.ts'
import { buildCarriedSeal, type Carried } from '../../../src/carriage/log/carried-event.ts'
import { buildEventMessage } from '../../../src/carriage/log/event-message.ts'
import type { EventLog, LogMessage } from '../../../src/carriage/log/log.ts'
import { createTestDatabase } from '../database/database.ts'
import { buildManualClock } from '../run/manual-clock.ts'
import { buildMemoryLog } from './memory-log.ts'

const HOME = '0190a5c0-0000-7000-8000-0000000000f0'
export const HERE = '0190a5c0-0000-7000-8000-00000000000a' as AccountId
export const ELSEWHERE = '0190a5c0-0000-7000-8000-00000000000b' as AccountId
export const RETENTION_MS = 7 * 86_400_000
export const seals = buildCarriedSeal([Buffer.alloc(32, 1), Buffer.alloc(32, 2)])

/** A database that takes in from a log in memory: the cell `one`, or home. */
export async function buildIntakeUnderTest(self: 'home' | 'one' = 'one') {
  const database = await createTestDatabase({ isOwn: true })
  const { db, pool } = database
  const clock = buildManualClock()
  const log = buildMemoryLog(() => new Date(clock.now()))
  await pool.query('insert into database_identity (home, cell) values ($1, $2)', [HOME, self === 'home' ? null : self])
  await pool.query(`insert into account_fence (account, version, state) values ($1, 1, 'open')`, [HERE])
  await beginIntake(db, new Date(clock.now()))
  let monotonicMs = 0
  const own: { account: AccountId; before: Date }[] = []
  const told = {
    taken: 0,
    edgeReads: 0,
    failed: 0,
    faults: [] as string[],
    lines: [] as string[],
    queued: 0,
    opened: 0,
  }
  const logger = pino({ level: 'info' }, { write: (line) => void told.lines.push(JSON.parse(line).msg) })
  const build = (runnerId: string, to: EventLog = log, more: Partial<IntakeDeps> = {}) =>
    buildIntake({
      ...{ db, clock, logger, runnerId, home: HOME, self, retentionMs: RETENTION_MS, monotonicMs: () => monotonicMs },
      readOwnEdges: async () => {
        told.edgeReads += 1
        return { own, longer: [] }
      },
      open: async () => {
        told.opened += 1
        return to
      },
      ...{ unseal: seals.open, isPassedOver: (type) => type === 'webhook.test' },
      onTaken: (count) => {
        told.taken += count
      },
      onFailed: () => {
        told.failed += 1
      },
      onFault: (fault) => told.faults.push(fault),
      onQueued: () => {
        told.queued += 1
      },
      ...more,
    })
  const intake = build('intake-1')

  function message(over: Partial<Parameters<typeof buildEventMessage>[0]> & Partial<Carried> = {}): LogMessage {
    const { home = HOME, origin = self === 'home' ? 'one' : 'home', reference = null, ...event } = over
    return buildEventMessage(
      {
        ...{
          id: randomUUID() as EventId,
          type: 'invoice.create',
          account: HERE,
          resource: 'invoice',
          action: 'create',
        },
        ...{ resourceId: 'ä" 7', url: null, trace: null, isPurge: false, excludedWebhook: null },
        ...{ createdAt: new Date(clock.now()), carried: { home, origin, reference }, ...event },
      },
      ({ id }) => JSON.stringify({ id }),
      seals.seal,
    )
  }
  const append = async (...messages: LogMessage[]) => {
    await log.append(messages, await log.readState())
    return messages.map(({ id }) => id)
  }
  return {
    ...{ db, pool, clock, log, own, told, intake, build, message, append },
    passMs: (ms: number) => {
      monotonicMs += ms
      clock.advance(ms)
    },
    settle: async (of = intake) => {
      for (let rounds = 0; rounds < 1_000; rounds += 1) {
        const pause = await of.round()
        if (pause > 0) return pause
      }
      throw new Error('the intake does not rest')
    },
    events: async () =>
      (await pool.query('select document_id from event_occurrence order by created_at, document_id')).rows.map(
        ({ document_id }) => document_id as string,
      ),
    queue: async () =>
      (await pool.query('select event_id from event_queue')).rows.map(({ event_id }) => event_id as string),
    facts: () => findIntakeFacts(db),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
