import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { DispatchId, WebhookId } from '../../base/id.ts'
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
  clock.advance(50)
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
    last_attempt_at: ledger.now(),
  })
  expect(await read(tried)).toMatchObject({
    ...{ worker: null, response_excerpt: null, response_headers: null, dns_ms: null, total_ms: null },
    last_attempt_at: ledger.now(),
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
  const ids = await ledger.addDispatches(webhook, { ...claimed, count: 3 })
  const [id, other, pulled] = ids as [DispatchId, DispatchId, DispatchId]
  const job = ledger.ids.next<'replay job'>()
  await db.updateTable('webhook_dispatch_open').set({ keeps_schedule: true, replay_job: job }).execute()
  const lease = { lease_owner: null, leased_until: ledger.now(), kept_until: new Date(clock.now() + 90_000) }
  await db.updateTable('webhook_dispatch_open').set(lease).where('document_id', '=', pulled).execute()
  const before = await db
    .selectFrom('webhook_dispatch_open')
    .selectAll()
    .where('document_id', '=', other)
    .executeTakeFirstOrThrow()
  clock.advance(43)
  const startedAt = ledger.now()
  clock.advance(7)
  const nextAttemptAt = new Date(clock.now() + 60_000)
  const change: DispatchChange = {
    ...{ id, webhook, fence: 1, attempt: 1, nextAttemptAt, statusCode: 503, errorClass: 'http_5xx', durationMs: 7 },
    ...{ startedAt, endedAt: ledger.now(), worker: 'worker-a', responseExcerpt: 'no' },
    ...{ timings: null, responseHeaders: null, status: 'retrying', trigger: 'schedule' },
  }
  const pulledAgainAt = new Date(clock.now() + 30_000)
  const changes = [change, { ...change, id: pulled, nextAttemptAt: pulledAgainAt }]
  await settleChanges(db, changes, { workerId: 'worker-a', withFailures: true })
  const rows = await db.selectFrom('webhook_dispatch_open').selectAll().orderBy('document_id').execute()
  expect(rows.find((row) => row.document_id === other)).toEqual(before)
  expect(rows.find((row) => row.document_id === id)).toMatchObject({
    ...{ status: 'retrying', attempts: 1, next_attempt_at: nextAttemptAt, lease_owner: null, leased_until: null },
    ...{ last_status_code: 503, last_error: 'http_5xx', last_duration_ms: 7, keeps_schedule: false, fence: 2 },
    ...{ last_attempt_at: startedAt, updated_at: ledger.now() },
  })
  expect(rows.find((row) => row.document_id === pulled)).toMatchObject({
    ...{ next_attempt_at: pulledAgainAt, leased_until: null, kept_until: lease.kept_until, fence: 2 },
  })
  expect(await ledger.readHeads()).toEqual(new Map([[webhook, { visitAt: nextAttemptAt, isHeld: false }]]))
})

test('a result is void when its claim is taken back while it waits for the row', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const clock = buildManualClock()
  const ledger = buildLedger(db, clock)
  const webhook = await ledger.addWebhook()
  const [id] = (await ledger.addDispatches(webhook, { leaseUntil: ledger.now(), attempts: 1 })) as [DispatchId]
  const change: DispatchChange = {
    ...{ id, webhook, fence: 1, attempt: 1, nextAttemptAt: ledger.now(), statusCode: 503, errorClass: 'http_5xx' },
    ...{ durationMs: 7, startedAt: ledger.now(), endedAt: ledger.now(), worker: 'worker-a', responseExcerpt: null },
    ...{ timings: null, responseHeaders: null, status: 'retrying', trigger: 'schedule' },
  }
  const done = await whileHeld(
    db,
    (tx) => tx.updateTable('webhook_dispatch_open').set({ fence: 2, lease_owner: 'worker-b' }).execute(),
    () => settleChanges(db, [change], { workerId: 'worker-a', withFailures: true }),
  )
  expect(done.settled).toEqual([])
  expect(await ledger.readDispatch(id)).toMatchObject({ status: 'pending', lease_owner: 'worker-b' })
})

test('attempts of a webhook of an account count for it, those of a global one for all only', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const ledger = buildLedger(db, buildManualClock())
  const account = await ledger.addAccount()
  const [own, global] = [await ledger.addWebhook({ account }), await ledger.addWebhook({ account })]
  await db.updateTable('webhook').set({ is_global: true }).where('document_id', '=', global).execute()
  const changeOf = async (webhook: WebhookId): Promise<DispatchChange> => {
    const [id] = (await ledger.addDispatches(webhook, { leaseUntil: ledger.now(), attempts: 1 })) as [DispatchId]
    return {
      ...{ id, webhook, fence: 1, attempt: 1, nextAttemptAt: null, statusCode: 200, errorClass: null, durationMs: 1 },
      ...{ startedAt: ledger.now(), endedAt: ledger.now(), worker: 'worker-a', responseExcerpt: null },
      ...{ timings: null, responseHeaders: null, status: 'success', trigger: 'schedule' },
    }
  }
  const changes = [await changeOf(own), await changeOf(global)]
  await db.updateTable('webhook_dispatch_open').set({ account }).execute()
  await settleChanges(db, changes, { workerId: 'worker-a', withFailures: true })
  const [batch] = await db.selectFrom('webhook_outcome_batch').select(['webhooks', 'owners']).execute()
  expect(new Map(batch!.webhooks.map((webhook, index) => [webhook, batch!.owners[index]]))).toEqual(
    new Map([
      [own, account],
      [global, null],
    ]),
  )
})
