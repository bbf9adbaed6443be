import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { DispatchId } from '../../base/id.ts'
import { findDispatchWithAttempts } from '../ledger/dispatch.store.ts'
import { type DispatchChange, settleChanges } from './settle.store.ts'

test('a row that ends keeps its last attempt, but that of a test is in the log', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const clock = buildManualClock()
  const ledger = buildLedger(db, clock)
  const webhook = await ledger.addWebhook()
  const claimed = { leaseUntil: new Date(clock.now() + 1), attempts: 1 } as const
  const [plain] = (await ledger.addDispatches(webhook, claimed)) as [DispatchId]
  const [tried] = (await ledger.addDispatches(webhook, { ...claimed, isTest: true, trigger: 'test' })) as [DispatchId]
  const change: Omit<DispatchChange, 'id'> = {
    ...{ webhook, fence: 1, attempt: 1, nextAttemptAt: null, statusCode: 200, errorClass: null, durationMs: 1 },
    ...{ startedAt: ledger.now(), endedAt: ledger.now(), worker: 'worker-a', responseExcerpt: 'ok' },
    timings: { dnsMs: 1, connectMs: 2, tlsMs: 3, firstByteMs: 4, totalMs: 5 },
    responseHeaders: { server: 'x' },
    status: 'success',
    trigger: 'schedule',
  }
  const changes: DispatchChange[] = [
    { ...change, id: plain },
    { ...change, id: tried, trigger: 'test' },
  ]
  await settleChanges(db, changes, { workerId: 'worker-a', withFailures: true })
  const read = (id: DispatchId) =>
    db.selectFrom('webhook_dispatch_ended').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()
  expect(await read(plain)).toMatchObject({
    ...{ worker: 'worker-a', response_excerpt: 'ok', response_headers: { server: 'x' }, dns_ms: 1, total_ms: 5 },
  })
  expect(await read(tried)).toMatchObject({
    ...{ worker: null, response_excerpt: null, response_headers: null, dns_ms: null, total_ms: null },
  })
  for (const id of [plain, tried])
    expect((await findDispatchWithAttempts(db, id))?.attempts).toMatchObject([
      { worker: 'worker-a', responseExcerpt: 'ok' },
    ])
})

test('a row that waits again has the outcome of its attempt, its next time and no lease', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const clock = buildManualClock()
  const ledger = buildLedger(db, clock)
  const webhook = await ledger.addWebhook()
  const claimed = { leaseUntil: new Date(clock.now() + 1), attempts: 1, trigger: 'replay' } as const
  const [id, other] = (await ledger.addDispatches(webhook, { ...claimed, count: 2 })) as [DispatchId, DispatchId]
  const job = ledger.ids.next<'replay job'>()
  await db.updateTable('webhook_dispatch_open').set({ keeps_schedule: true, replay_job: job }).execute()
  const before = await db
    .selectFrom('webhook_dispatch_open')
    .selectAll()
    .where('document_id', '=', other)
    .executeTakeFirstOrThrow()
  clock.advance(50)
  const nextAttemptAt = new Date(clock.now() + 60_000)
  const change: DispatchChange = {
    ...{ id, webhook, fence: 1, attempt: 1, nextAttemptAt, statusCode: 503, errorClass: 'http_5xx', durationMs: 7 },
    ...{ startedAt: ledger.now(), endedAt: ledger.now(), worker: 'worker-a', responseExcerpt: 'no' },
    ...{ timings: null, responseHeaders: null, status: 'retrying', trigger: 'schedule' },
  }
  await settleChanges(db, [change], { workerId: 'worker-a', withFailures: true })
  const rows = await db.selectFrom('webhook_dispatch_open').selectAll().orderBy('document_id').execute()
  expect(rows.find((row) => row.document_id === other)).toEqual(before)
  expect(rows.find((row) => row.document_id === id)).toMatchObject({
    ...{ status: 'retrying', attempts: 1, next_attempt_at: nextAttemptAt, lease_owner: null, leased_until: null },
    ...{ last_status_code: 503, last_error: 'http_5xx', last_duration_ms: 7, keeps_schedule: false, fence: 2 },
    ...{ updated_at: ledger.now() },
  })
})
