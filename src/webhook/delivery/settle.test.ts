import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { type DispatchId, NIL_ID } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import type { EndedAttempt } from './outcome.ts'
import { settleAttempts } from './settle.ts'

async function openLedger() {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  const webhook = await ledger.addWebhook()
  const leaseUntil = new Date(clock.now() + 30_000)
  const ids = await ledger.addDispatches(webhook, { count: 4, leaseUntil, attempts: 1 })
  const end = (index: number, statusCode: number): EndedAttempt => ({
    id: ids[index]!,
    fence: 1,
    attempt: 1,
    trigger: 'schedule',
    isTest: false,
    webhook,
    event: 'contract.create',
    workerId: 'worker-lost',
    traceId: null,
    startedAt: ledger.now(),
    endedAt: new Date(clock.now() + index),
    durationMs: 1,
    result: { statusCode },
    responseExcerpt: null,
    responseHeaders: null,
    timings: null,
  })
  return { database, ledger, webhook, ids, end, [Symbol.asyncDispose]: database[Symbol.asyncDispose] }
}

test('a success that ends after a failure resets the count of failures, also when both are recorded at once', async () => {
  await using fixture = await openLedger()
  const { database, ledger, webhook, end } = fixture
  const { recorded } = await settleAttempts(ledger.deps, database.db, [end(0, 302), end(1, 200)])
  expect(recorded.map((result) => result.isRecorded)).toEqual([true, true])
  expect(await ledger.readWebhook(webhook)).toMatchObject({ consecutive_failures: 0 })
})

test('a retry, and a success of a webhook without failures, are recorded while another locks the webhook', async () => {
  await using fixture = await openLedger()
  const { database, ledger, end } = fixture
  const { recorded, heldBack } = await inTransaction(database.db, async (tx) => {
    await tx.selectFrom('webhook').select('document_id').forUpdate().execute()
    return settleAttempts(ledger.deps, database.db, [end(0, 503), end(1, 200)])
  })
  expect(recorded.map((result) => result.isRecorded)).toEqual([true, true])
  expect(heldBack).toEqual([])
})

test('a success of a webhook with failures is recorded once, behind the lock of the webhook', async () => {
  await using fixture = await openLedger()
  const { database, ledger, webhook, end } = fixture
  await database.db.updateTable('webhook').set({ consecutive_failures: 3 }).execute()
  const { recorded } = await settleAttempts(ledger.deps, database.db, [end(0, 200)])
  expect(recorded.map((result) => result.isRecorded)).toEqual([true])
  expect(await ledger.readWebhook(webhook)).toMatchObject({ consecutive_failures: 0 })
})

test('the events of what is recorded have its time, not that of what is held back', async () => {
  await using fixture = await openLedger()
  const { database, ledger, ids, end } = fixture
  const other = await ledger.addWebhook()
  const of = { webhook: other, id: ids[1]! }
  await database.db
    .updateTable('webhook_dispatch_open')
    .set({ webhook: other })
    .where('document_id', '=', of.id)
    .execute()
  await database.db.updateTable('webhook_dispatch_open').set({ attempts: 5 }).execute()
  const failed = [0, 1].map((index) => ({ ...end(index, 503), attempt: 5, ...(index === 1 && of) }))
  const { heldBack } = await inTransaction(database.db, async (tx) => {
    await tx.selectFrom('webhook').select('document_id').where('document_id', '=', other).forUpdate().execute()
    return settleAttempts(ledger.deps, database.db, failed)
  })
  expect(heldBack.map(({ id }) => id)).toEqual([of.id])
  const events = database.db.selectFrom('event_occurrence').select(['resource_id', 'created_at'])
  expect(await events.where('event', '=', 'webhook-dispatch.exhausted').execute()).toEqual([
    { resource_id: ids[0], created_at: failed[0]!.endedAt },
  ])
})

test('what a mail is to tell is noted in the transaction that counts the failure, and only where mails are sent', async () => {
  await using fixture = await openLedger()
  const { database, ledger, webhook, ids, end } = fixture
  const { pool } = database
  const [account] = (
    await pool.query(
      `insert into account (document_id, name, created_at, updated_at)
       values (gen_random_uuid(), 'Acme', now(), now()) returning document_id`,
    )
  ).rows
  const failures = async (isGlobal = false) => {
    const values = [webhook, account.document_id, isGlobal]
    const text = 'update webhook set is_global = $3, account = $2, consecutive_failures = 14 where document_id = $1'
    await pool.query(text, values)
  }
  const columns = 'kind, account, dispatch, last_error, last_status_code'
  const notices = async () => (await pool.query(`select ${columns} from webhook_mail_notice`)).rows
  const deps = { ...ledger.deps, canSendMail: true }
  await failures()
  const onRecording = () => {
    throw new Error('crash')
  }
  await expect(settleAttempts({ ...deps, onRecording }, database.db, [end(0, 410)])).rejects.toThrow('crash')
  expect(await notices()).toEqual([])
  await settleAttempts(ledger.deps, database.db, [end(0, 410)])
  expect(await notices()).toEqual([])
  await failures()
  await settleAttempts(deps, database.db, [end(1, 410)])
  const told = { kind: 'failing', account: account.document_id, dispatch: ids[1] }
  expect(await notices()).toEqual([{ ...told, last_error: 'http_4xx', last_status_code: 410 }])
  await pool.query('update webhook_mail_notice set mailed_at = now()')
  await settleAttempts(deps, database.db, [end(2, 204)])
  const recovered = { ...told, kind: 'recovered', dispatch: ids[2] }
  expect(await notices()).toEqual([{ ...recovered, last_error: null, last_status_code: 204 }])
  await failures(true)
  await settleAttempts(deps, database.db, [{ ...end(3, 0), attempt: 5, result: { errorClass: 'timeout' } }])
  expect(await notices()).toContainEqual({
    kind: 'failing',
    account: NIL_ID,
    dispatch: ids[3],
    last_error: 'timeout',
    last_status_code: null,
  })
})

test('a batch that ends an incident and begins another tells of both, though the count is the same behind it', async () => {
  await using fixture = await openLedger()
  const { database, ledger, webhook, ids, end } = fixture
  await ledger.addDispatches(webhook, { count: 7, leaseUntil: ledger.now(), attempts: 1 })
  const open = await database.db.selectFrom('webhook_dispatch_open').select('document_id').execute()
  await database.db.updateTable('webhook').set({ consecutive_failures: 10 }).execute()
  const failed = open.filter(({ document_id: id }) => id !== ids[0])
  const ended = [end(0, 200), ...failed.map(({ document_id: id }) => ({ ...end(1, 410), id: id as DispatchId }))]
  const { notices } = await settleAttempts(ledger.deps, database.db, ended)
  expect(notices.map(({ event }) => event)).toEqual(['webhook.recovered', 'webhook.failing'])
  expect(await ledger.readWebhook(webhook)).toMatchObject({ consecutive_failures: 10, updated_at: ended[1]!.endedAt })
  const told = await database.db
    .selectFrom('event_occurrence')
    .select('event')
    .where('resource_id', '=', webhook)
    .execute()
  expect(told.map(({ event }) => event).toSorted()).toEqual(['webhook.failing', 'webhook.recovered'])
  const all = await database.db.selectFrom('event_occurrence').select('event').distinct().execute()
  expect(all.map(({ event }) => event)).not.toContain('webhook-dispatch.exhausted')
})

test('a batch with a notice of a failing webhook tells of nothing but that its webhook is disabled', async () => {
  await using fixture = await openLedger()
  const { database, ledger, end } = fixture
  const { db } = database
  const failTwice = async (failures: number, indexes: readonly [number, number]) => {
    await db.updateTable('webhook').set({ consecutive_failures: failures }).execute()
    const ended = [{ ...end(indexes[0], 410), event: 'webhook.failing' }, end(indexes[1], 410)]
    return (await settleAttempts(ledger.deps, db, ended)).notices.map(({ event }) => event)
  }
  expect(await failTwice(8, [0, 1])).toEqual([])
  expect(await failTwice(18, [2, 3])).toEqual(['webhook.auto-disable'])
})

test('what changes no count leaves the row of the webhook as it was', async () => {
  await using fixture = await openLedger()
  const { database, ledger, webhook, ids, end } = fixture
  await database.db.updateTable('webhook').set({ deleted_at: ledger.now() }).execute()
  const before = await ledger.readWebhook(webhook)
  await settleAttempts(ledger.deps, database.db, [end(1, 503)])
  expect(await ledger.readDispatch(ids[1]!)).toMatchObject({ status: 'cancelled' })
  expect(await ledger.readWebhook(webhook)).toEqual(before)
})
