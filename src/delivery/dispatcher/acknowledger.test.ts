import pino, { type Logger } from 'pino'
import { describe, expect, test } from 'vitest'
import { buildListeningLogger } from '../../../test/harness/app/listening-logger.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock, type ManualClock } from '../../../test/harness/run/manual-clock.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import type { EndedAttempt } from '../../webhook/delivery/outcome.ts'
import { type SettledAttempts, settleAttempts } from '../../webhook/delivery/settle.ts'
import { type AcknowledgerDeps, buildAcknowledger } from './acknowledger.ts'

/** Opens an acknowledger over the ledger of webhooks. `onSettle` runs before each statement, and may refuse it. */
async function openRecorder(
  options: { clock?: ManualClock; logger?: Logger; onSettle?: () => void; onRefused?: () => void } = {},
) {
  const database = await createTestDatabase()
  const { clock = buildManualClock(), logger = pino({ level: 'silent' }) } = options
  const ledger = buildLedger(database.db, clock)
  const webhook = await ledger.addWebhook()
  const done: EndedAttempt[] = []
  const settled: SettledAttempts[] = []
  const policy: AcknowledgerDeps<EndedAttempt, SettledAttempts>['policy'] = {
    queue: {
      settle: async (ended) => {
        options.onSettle?.()
        return settleAttempts(ledger.deps, database.db, ended)
      },
    },
    onSettled: (result) => settled.push(result),
    listHeldBack: ({ heldBack }) => heldBack,
  }
  const { onRefused = () => {} } = options
  const acknowledger = buildAcknowledger({ policy, clock, logger, onRefused }, (attempts) => {
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
    const rows = await database.db.selectFrom('webhook_dispatch').select(['document_id', 'status']).execute()
    return new Map(rows.map((row) => [row.document_id, row.status]))
  }
  const opened = {
    onDone: () => {},
    database,
    clock,
    acknowledger,
    done,
    settled,
    addClaimed,
    listStatuses,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
  return opened
}

describe('the acknowledger', () => {
  test('has settled only when every result is recorded, those that came while it worked too', async () => {
    await using t = await openRecorder()
    const attempts = await t.addClaimed(3)
    expect(t.acknowledger.settled()).toBeUndefined()
    t.acknowledger.add(attempts[0]!, attempts[0]!.webhook)
    const settled = t.acknowledger.settled()
    t.acknowledger.add(attempts[1]!, attempts[1]!.webhook)
    t.acknowledger.add(attempts[2]!, attempts[2]!.webhook)
    await settled
    expect(t.acknowledger.settled()).toBeUndefined()
    expect([...(await t.listStatuses()).values()]).toEqual(['success', 'success', 'success'])
    expect(t.done.map((result) => result.id).sort()).toEqual(attempts.map((attempt) => attempt.id).sort())
  })

  test('misses no result that comes in the very step in which it ends', async () => {
    // Found by reading: a result that came between the last look and the end of the promise waited for the next one.
    await using t = await openRecorder()
    const [first, second] = await t.addClaimed(2)
    t.onDone = () => {
      if (t.done.length === 1) queueMicrotask(() => t.acknowledger.add(second!, second!.webhook))
    }
    t.acknowledger.add(first!, first!.webhook)
    while (t.acknowledger.settled()) await t.acknowledger.settled()
    expect([...(await t.listStatuses()).values()]).toEqual(['success', 'success'])
  })

  test('lets no result that the database never takes hold up the others, and reports its claim', async () => {
    let refused = 0
    await using t = await openRecorder({
      onRefused: () => {
        refused += 1
      },
    })
    const attempts = await t.addClaimed(5)
    attempts[2] = { ...attempts[2]!, responseExcerpt: 'a NUL \0 is no text for PostgreSQL' }
    for (const attempt of attempts) t.acknowledger.add(attempt, attempt.webhook)
    while (t.acknowledger.settled()) await t.acknowledger.settled()
    const statuses = await t.listStatuses()
    expect(attempts.map((attempt) => statuses.get(attempt.id))).toEqual([
      'success',
      'success',
      'pending',
      'success',
      'success',
    ])
    expect(t.done).toHaveLength(5)
    expect(refused).toBe(1)
  })

  test('keeps a result whose own statement fails for another reason beside one that the database never takes', async () => {
    let statements = 0
    let refused = 0
    await using t = await openRecorder({
      onSettle: () => {
        statements += 1
        // The first statement holds both, the second the first of them alone.
        if (statements === 2) throw new Error('connection terminated')
      },
      onRefused: () => {
        refused += 1
      },
    })
    const [kept, never] = await t.addClaimed(2)
    for (const attempt of [kept!, { ...never!, responseExcerpt: 'a NUL \0 is no text for PostgreSQL' }])
      t.acknowledger.add(attempt, attempt.webhook)
    while (t.acknowledger.settled()) await t.acknowledger.settled()
    const statuses = await t.listStatuses()
    expect([statuses.get(kept!.id), statuses.get(never!.id)]).toEqual(['success', 'pending'])
    expect(refused).toBe(1)
    expect(t.done).toHaveLength(2)
  })

  test('tries again after any other failure, until it is recorded', async () => {
    let failures = 3
    const onSettle = () => {
      if (failures === 0) return
      failures -= 1
      throw new Error('connection terminated')
    }
    const clock = buildManualClock()
    const logger = buildListeningLogger((message) => {
      if (message.startsWith('attempts not recorded yet')) setImmediate(() => clock.advance(250))
    })
    await using t = await openRecorder({ onSettle, clock, logger })
    const [attempt] = await t.addClaimed(1)
    t.acknowledger.add(attempt!, attempt!.webhook)
    await t.acknowledger.settled()
    expect(failures).toBe(0)
    expect([...(await t.listStatuses()).values()]).toEqual(['success'])
    expect(t.done).toHaveLength(1)
  })

  test('collects results for 10 ms and records them together; those that come later are another batch', async () => {
    const clock = buildManualClock()
    await using t = await openRecorder({ clock })
    const attempts = await t.addClaimed(4)
    const first = Promise.withResolvers<void>()
    const second = Promise.withResolvers<void>()
    const batches: number[] = []
    t.onDone = () => {
      batches.push(t.done.length)
      if (batches.length === 1) first.resolve()
      else second.resolve()
    }
    t.acknowledger.add(attempts[0]!, attempts[0]!.webhook)
    clock.advance(9)
    t.acknowledger.add(attempts[1]!, attempts[1]!.webhook)
    await new Promise(setImmediate)
    expect(batches).toEqual([])
    clock.advance(1)
    t.acknowledger.add(attempts[2]!, attempts[2]!.webhook)
    await first.promise
    t.acknowledger.add(attempts[3]!, attempts[3]!.webhook)
    await new Promise(setImmediate)
    clock.advance(10)
    await second.promise
    expect(batches).toEqual([3, 4])
    expect(t.settled.map((result) => result.recorded.length)).toEqual([3, 1])
  })

  test('does not rest when its end is waited for, as at a stop', async () => {
    await using t = await openRecorder()
    const attempts = await t.addClaimed(5)
    for (const attempt of attempts.slice(0, 3)) t.acknowledger.add(attempt, attempt.webhook)
    const settled = t.acknowledger.settled()
    t.onDone = () => {
      if (t.done.length === 3)
        queueMicrotask(() => {
          for (const attempt of attempts.slice(3)) t.acknowledger.add(attempt, attempt.webhook)
        })
    }
    await settled
    await t.acknowledger.settled()
    expect(t.done).toHaveLength(5)
  })

  test('records what a locked row holds back when the lock ends, once, with what came of its group meanwhile', async () => {
    const clock = buildManualClock()
    await using t = await openRecorder({ clock })
    const attempts = await t.addClaimed(3)
    const failed = attempts.map((attempt) => ({ ...attempt, result: { statusCode: 302 } }))
    const holder = await t.database.pool.connect()
    await holder.query('begin')
    await holder.query('select from webhook for update')
    t.acknowledger.add(failed[0]!, failed[0]!.webhook)
    clock.advance(10)
    await waitFor('the first try', () => t.settled.length === 1)
    expect(t.settled[0]).toMatchObject({ recorded: [], heldBack: [{ id: failed[0]!.id }] })
    t.acknowledger.add(failed[1]!, failed[1]!.webhook)
    // Another group does not wait.
    t.acknowledger.add(attempts[2]!, 'another')
    await waitFor('the other group', async () => {
      clock.advance(10)
      return (await t.listStatuses()).get(attempts[2]!.id) === 'success'
    })
    expect((await t.listStatuses()).get(failed[0]!.id)).toBe('pending')
    await holder.query('rollback')
    holder.release()
    await waitFor('all results', () => {
      clock.advance(250)
      return t.done.length === 3
    })
    await t.acknowledger.settled()
    const statuses = await t.listStatuses()
    expect(failed.slice(0, 2).map((attempt) => statuses.get(attempt.id))).toEqual(['failed', 'failed'])
    expect(t.done).toHaveLength(3)
  })
})
