import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId, UserId, WebhookId } from '../../base/id.ts'
import type { MailId } from '../../identity/mail/mail.ts'
import { buildWebhookMailCheck, type MailPlace } from './mail-check.ts'
import { changeMailSetting } from './mail-setting.store.ts'
import { insertMailRecipients } from './notice.store.ts'
import { GLOBAL_WEBHOOKS } from './notice.ts'

const clock = buildManualClock()
const now = new Date(clock.now())

let home: TestDatabase
let cell: TestDatabase
let account: AccountId
let user: UserId
let webhook: WebhookId
let mail: MailId
let to: string
beforeAll(async () => {
  ;[home, cell] = [await createTestDatabase(), await createTestDatabase()]
})
afterAll(async () => {
  await home[Symbol.asyncDispose]()
  await cell[Symbol.asyncDispose]()
})
beforeEach(async () => {
  ;[account, user] = [randomUUID() as AccountId, randomUUID() as UserId]
  ;[webhook, mail, to] = [randomUUID() as WebhookId, randomUUID() as MailId, `${user}@b.test`]
  for (const { pool } of [home, cell])
    await pool.query(
      `insert into account (document_id, name, created_at, updated_at) values ($1, 'Acme', now(), now())`,
      [account],
    )
  await home.pool.query(
    `insert into "user" (document_id, email, email_verified_at, created_at, updated_at) values ($1, $2, now(), now(), now())`,
    [user, to],
  )
  await home.pool.query(
    'insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, now(), now())',
    [randomUUID(), account, user],
  )
  await home.pool.query(
    `insert into mail_outbox (document_id, kind, recipient, due_at, expires_at, created_at)
     values ($1, 'webhook', $2, now(), now(), now())`,
    [mail, to],
  )
  await insertMailRecipients(home.db, [{ mail, user, account, webhooks: [webhook] }])
})

const addWebhook = ({ pool }: TestDatabase) =>
  pool.query(
    `insert into webhook (document_id, url, account, secret_encrypted, contacts, created_at, updated_at)
     values ($1, 'https://hooks.example/', $2, '', array[$3::uuid], now(), now())`,
    [webhook, account, user],
  )

/** A check whose account is in this place; `reads` counts what it asked of cells. */
function build(place: () => Promise<MailPlace>) {
  const state = { reads: 0, isLate: false }
  const check = buildWebhookMailCheck({
    clock,
    findPlace: place,
    within: (reading) => {
      state.reads += 1
      return state.isLate ? reading.then(() => Promise.reject(new Error('late'))) : reading
    },
  })
  return { state, isWanted: () => check(home.db, { id: mail, to } as Parameters<typeof check>[1]) }
}
const inHome = async () => ({ cell: null, db: home.db })
const inCell = async () => ({ cell: 'c1', db: cell.db })

test('a mail is wanted while the webhook where the account is names its reader', async () => {
  const [ofHome, ofCell] = [build(inHome), build(inCell)]
  expect([await ofHome.isWanted(), await ofCell.isWanted()]).toEqual([false, false])
  await addWebhook(cell)
  expect([await ofHome.isWanted(), await ofCell.isWanted()]).toEqual([false, true])
  await cell.pool.query('delete from webhook where document_id = $1', [webhook])
  await addWebhook(home)
  expect([await ofHome.isWanted(), await ofCell.isWanted()]).toEqual([true, false])
  expect([ofHome.state.reads, ofCell.state.reads]).toEqual([0, 3])
})

test('what home says ends it, and no cell is asked', async () => {
  await addWebhook(cell)
  const { state, isWanted } = build(inCell)
  await changeMailSetting(home.db, user, { stoppedWebhooks: [webhook] }, now)
  expect(await isWanted()).toBe(false)
  await changeMailSetting(home.db, user, { stoppedWebhooks: [], isStopped: true }, now)
  expect(await isWanted()).toBe(false)
  await home.pool.query('delete from account_member where "user" = $1', [user])
  expect(await isWanted()).toBe(false)
  expect(state.reads).toBe(0)
})

test('a mail about global webhooks is judged in home, wherever accounts are', async () => {
  await home.pool.query('update webhook_mail_recipient set account = $2 where mail = $1', [mail, GLOBAL_WEBHOOKS])
  const { isWanted } = build(() => Promise.reject(new Error('away')))
  expect(await isWanted()).toBe(false)
  await home.pool.query(
    `insert into webhook (document_id, url, account, is_global, secret_encrypted, contacts, created_at, updated_at)
     values ($1, 'https://hooks.example/', null, true, '', array[$2::uuid], now(), now())`,
    [webhook, user],
  )
  expect(await isWanted()).toBe(true)
})

test('a mail waits while the database of its account is away', async () => {
  await addWebhook(cell)
  const lost = build(() => Promise.reject(new Error('away')))
  expect(await lost.isWanted()).toBe('unknown')
})

test('a cell that does not answer is asked again 30 seconds later, alone', async () => {
  await addWebhook(cell)
  let place = inCell
  const { state, isWanted } = build(() => place())
  state.isLate = true
  expect(await isWanted()).toBe('unknown')
  state.isLate = false
  clock.advance(29_999)
  expect(await isWanted()).toBe('unknown')
  expect(state.reads).toBe(1)
  place = async () => ({ cell: 'c2', db: cell.db })
  expect(await isWanted()).toBe(true)
  place = inCell
  clock.advance(1)
  expect(await isWanted()).toBe(true)
  expect(await isWanted()).toBe(true)
  expect(state.reads).toBe(4)
})
