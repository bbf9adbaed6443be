import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { untilWaiting } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, UserId, WebhookId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  activateIfDifferent,
  deactivateAccountWebhooks,
  deactivateIfActive,
  deleteWebhookForGood,
  rotateSecretOf,
  softDeleteWebhook,
} from './webhook-state.store.ts'

let account: AccountId
let by: UserId
/** The webhook under test, and another one of its account in the same state. */
let hook: WebhookId
let beside: WebhookId
const rowsOf = (of: Database) => buildIdentityRows(of)
const database = await openForFile(createTestDatabase())
const { db } = database
beforeEach(async () => {
  ;[account, by] = [await rowsOf(db).account(), await rowsOf(db).user()]
  ;[hook, beside] = [await make(), await make()]
})

async function make(of: AccountId | null = account): Promise<WebhookId> {
  const id = newId<WebhookId>()
  const row = { document_id: id, url: 'https://a.test/', account: of, is_global: of === null, secret_encrypted: 'old' }
  await db
    .insertInto('webhook')
    .values({ ...row, created_at: MADE_AT, updated_at: MADE_AT })
    .execute()
  return id
}
const set = (id: WebhookId, assignment: string) =>
  database.pool.query(`update webhook set ${assignment} where document_id = $1`, [id])
const read = async (id: WebhookId) =>
  (await database.pool.query('select * from webhook where document_id = $1', [id])).rows[0]
const change = {
  get by() {
    return by
  },
  now: madeAfter(5),
}
const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)
const FAILED = `is_actived = false, consecutive_failures = 20, disabled_at = now(), disabled_reason = 'failures'`

test('an active webhook is made inactive, once and alone', async () => {
  const before = await read(beside)
  expect(await deactivateIfActive(db, { id: hook, ...change })).toMatchObject({
    id: hook,
    isActived: false,
    updatedAt: madeAfter(5),
  })
  expect(await deactivateIfActive(db, { id: hook, ...change })).toBeUndefined()
  expect(await read(hook)).toMatchObject({ is_actived: false, updated_by: by })
  expect(await read(beside)).toEqual(before)
})

test.each([FAILED, 'is_actived = false', 'consecutive_failures = 1', 'disabled_at = now()', `disabled_reason = 'x'`])(
  'a webhook with %s is made active and clear, once and alone, with the end of its notices',
  async (assignment) => {
    for (const id of [hook, beside]) {
      await set(id, assignment)
      await database.pool.query(
        `insert into webhook_mail_notice (webhook, kind, account, dispatch, created_at) values ($1, 'failing', $2, $3, $4)`,
        [id, account, newId(), MADE_AT],
      )
    }
    const before = await read(beside)
    const clear = { isActived: true, consecutiveFailures: 0, disabledAt: null, disabledReason: null }
    expect(await activateIfDifferent(db, { id: hook, ...change })).toMatchObject({
      id: hook,
      ...clear,
      updatedAt: madeAfter(5),
    })
    expect(await activateIfDifferent(db, { id: hook, ...change })).toBeUndefined()
    expect(await read(hook)).toMatchObject({ is_actived: true, updated_by: by })
    expect(await read(beside)).toEqual(before)
    const { rows } = await database.pool.query('select webhook from webhook_mail_notice where account = $1', [account])
    expect(rows).toEqual([{ webhook: beside }])
  },
)

test('a webhook is not made active once its account is deleted, and a global one has none', async () => {
  const global = await make(null)
  for (const id of [hook, global]) await set(id, FAILED)
  await rowsOf(db).set('account', account, { deleted_at: MADE_AT })
  expect(await activateIfDifferent(db, { id: hook, ...change })).toBeUndefined()
  expect(await activateIfDifferent(db, { id: global, ...change })).toMatchObject({ id: global, isActived: true })
})

test('a webhook gets another secret alone', async () => {
  expect(await rotateSecretOf(db, { id: hook, ...change, by, secretEncrypted: 'new' })).toMatchObject({ id: hook })
  expect(await read(hook)).toMatchObject({ secret_encrypted: 'new', updated_by: by, updated_at: madeAfter(5) })
  expect(await read(beside)).toMatchObject({ secret_encrypted: 'old', updated_at: MADE_AT })
})

test('a deleted webhook changes no more', async () => {
  const before = await read(beside)
  expect(await softDeleteWebhook(db, { id: hook, ...change })).toMatchObject({ id: hook, deletedAt: madeAfter(5) })
  const deleted = await read(hook)
  expect(deleted).toMatchObject({ deleted_at: madeAfter(5), updated_by: by })
  expect([
    await softDeleteWebhook(db, { id: hook, ...change }),
    await deactivateIfActive(db, { id: hook, ...change }),
    await rotateSecretOf(db, { id: hook, ...change, by, secretEncrypted: 'new' }),
  ]).toEqual([undefined, undefined, undefined])
  await set(hook, 'is_actived = false')
  expect(await activateIfDifferent(db, { id: hook, ...change })).toBeUndefined()
  expect(await read(beside)).toEqual(before)
})

test('the webhooks of an account are made inactive with its deletion, whatever they are, and no others', async () => {
  const [gone, other, global] = [await make(), await make(await rowsOf(db).account()), await make(null)]
  await set(beside, 'is_actived = false')
  await set(gone, `deleted_at = '${MADE_AT.toISOString()}'`)
  const kept = await Promise.all([gone, other, global].map(read))
  await write((tx) => deactivateAccountWebhooks(tx, account, { ...change, by, reason: 'account-deleted' }))
  for (const id of [hook, beside])
    expect(await read(id)).toMatchObject({
      ...{ is_actived: false, disabled_at: madeAfter(5), disabled_reason: 'account-deleted', updated_by: by },
    })
  expect(await Promise.all([gone, other, global].map(read))).toEqual(kept)
})

test('a webhook is deleted for good with its place in the queue, alone', async () => {
  for (const id of [hook, beside])
    await database.pool.query('insert into webhook_queue (webhook, visit_at) values ($1, $2)', [id, MADE_AT])
  await write(async (tx) => {
    await tx.selectFrom('webhook').select('document_id').where('document_id', '=', hook).forUpdate().execute()
    await deleteWebhookForGood(tx, hook)
  })
  expect([await read(hook), (await read(beside)).document_id]).toEqual([undefined, beside])
  const { rows } = await database.pool.query('select webhook from webhook_queue where webhook = any($1)', [
    [hook, beside],
  ])
  expect(rows).toEqual([{ webhook: beside }])
})

test('the webhooks of an account are locked in the order of their ids, and written when all are', async () => {
  const [last, first] = ['ffffffff-ffff-7fff-bfff-fffffffffff1', '00000000-0000-7000-8000-000000000001'] as WebhookId[]
  await database.pool.query('update webhook set document_id = $2 where document_id = $1', [hook, last])
  await database.pool.query('update webhook set document_id = $2 where document_id = $1', [beside, first])
  const lock = (tx: Database, id: WebhookId | undefined) =>
    tx.selectFrom('webhook').select('document_id').where('document_id', '=', String(id)).forNoKeyUpdate().execute()
  const { deactivated } = await inTransaction(db, async (tx) => {
    await lock(tx, first)
    const deactivation = write((other) => deactivateAccountWebhooks(other, account, { ...change, reason: 'gone' }))
    await untilWaiting(db, 1)
    await lock(tx, last)
    return { deactivated: deactivation }
  })
  await deactivated
  for (const id of [first, last])
    expect(await read(id as WebhookId)).toMatchObject({ is_actived: false, disabled_reason: 'gone' })
})
