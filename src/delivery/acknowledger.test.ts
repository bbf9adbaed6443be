import pino from 'pino'
import { describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../test/harness/database.ts'
import { buildLedger } from '../../test/harness/ledger.ts'
import { buildListeningLogger } from '../../test/harness/listening-logger.ts'
import { buildManualClock } from '../../test/harness/manual-clock.ts'
import { type AcknowledgerDeps, buildAcknowledger } from './acknowledger.ts'
import type { EndedAttempt } from './settle.ts'

async function openRecorder(change: Partial<AcknowledgerDeps> = {}) {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  const webhook = await ledger.addWebhook()
  const done: EndedAttempt[] = []
  const deps = { ...ledger.deps, clock, db: database.db, logger: pino({ level: 'silent' }), ...change }
  const acknowledger = buildAcknowledger(deps, (attempts) => {
    done.push(...attempts)
    opened.onDone()
  })
  const addClaimed = async (count: number): Promise<EndedAttempt[]> => {
    const ids = await ledger.addDispatches(webhook, { count, attempts: 1, leaseUntil: new Date(clock.now() + 30_000) })
    return ids.map((id) => ({
      id,
      fence: 1,
      attempt: 1,
      trigger: 'schedule',
      isTest: false,
      webhook,
      event: 'contract.create',
      workerId: 'worker-a',
      startedAt: ledger.now(),
      endedAt: ledger.now(),
      durationMs: 1,
      result: { statusCode: 200 },
      responseExcerpt: null,
      responseHeaders: null,
      timings: null,
      traceId: null,
    }))
  }
  const listStatuses = async () => {
    const rows = await database.db
      .selectFrom('webhook_dispatch')
      .select(['document_id', 'status', 'lease_until'])
      .execute()
    return new Map(rows.map((row) => [row.document_id, row.status]))
  }
  const opened = {
    onDone: () => {},
    database,
    clock,
    acknowledger,
    done,
    addClaimed,
    listStatuses,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
  return opened
}

describe('the acknowledger', () => {
  it('has settled only when every result is recorded, those that came while it worked too', async () => {
    await using t = await openRecorder()
    const attempts = await t.addClaimed(3)
    expect(t.acknowledger.settled()).toBeUndefined()
    t.acknowledger.add(attempts[0]!)
    const settled = t.acknowledger.settled()
    t.acknowledger.add(attempts[1]!)
    t.acknowledger.add(attempts[2]!)
    await settled
    expect(t.acknowledger.settled()).toBeUndefined()
    expect([...(await t.listStatuses()).values()]).toEqual(['success', 'success', 'success'])
    expect(t.done.map((one) => one.id).sort()).toEqual(attempts.map((one) => one.id).sort())
  })

  it('misses no result that comes in the very step in which it ends', async () => {
    // Found by reading: a result that came between the last look and the end of the promise waited for the next one.
    await using t = await openRecorder()
    const [first, second] = await t.addClaimed(2)
    t.onDone = () => {
      if (t.done.length === 1) queueMicrotask(() => t.acknowledger.add(second!))
    }
    t.acknowledger.add(first!)
    while (t.acknowledger.settled()) await t.acknowledger.settled()
    expect([...(await t.listStatuses()).values()]).toEqual(['success', 'success'])
  })

  it('lets no result that the database never takes hold up the others', async () => {
    await using t = await openRecorder()
    const attempts = await t.addClaimed(5)
    attempts[2] = { ...attempts[2]!, responseExcerpt: 'a NUL \0 is no text for PostgreSQL' }
    for (const attempt of attempts) t.acknowledger.add(attempt)
    while (t.acknowledger.settled()) await t.acknowledger.settled()
    const statuses = await t.listStatuses()
    expect(attempts.map((one) => statuses.get(one.id))).toEqual(['success', 'success', 'pending', 'success', 'success'])
    expect(t.done).toHaveLength(5)
  })

  it('tries again after any other failure, until it is recorded', async () => {
    let failures = 3
    const onDispatcherPoint = (point: string) => {
      if (point !== 'during-record' || failures === 0) return
      failures -= 1
      throw new Error('connection terminated')
    }
    const clock = buildManualClock()
    const logger = buildListeningLogger((message) => {
      if (message.startsWith('attempts not recorded yet')) setImmediate(() => clock.advance(250))
    })
    await using t = await openRecorder({ onDispatcherPoint, clock, logger })
    const [attempt] = await t.addClaimed(1)
    t.acknowledger.add(attempt!)
    await t.acknowledger.settled()
    expect(failures).toBe(0)
    expect([...(await t.listStatuses()).values()]).toEqual(['success'])
    expect(t.done).toHaveLength(1)
  })
})
