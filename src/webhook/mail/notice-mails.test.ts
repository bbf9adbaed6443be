import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { TEST_SECRETS } from '../../../test/harness/app/test-secrets.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { type AccountId, buildIdMaker, type DispatchId, type UserId, type WebhookId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { changeMailSetting } from './mail-setting.store.ts'
import type { DueNotice } from './notice.store.ts'
import type { MailKind } from './notice.ts'
import { writeNoticeMails } from './notice-mails.ts'

/** Mails about webhooks that an address gets in an hour. */
const ROOM = 12

const clock = buildManualClock()
const keyring = buildKeyring(TEST_SECRETS.secretKey, systemRandom)
const now = new Date(clock.now())

let account: AccountId
let boss: UserId
let texts: string[]

const run = async (text: string, ...values: unknown[]) => (await database.pool.query(text, values)).rows

const database = await openForFile(createTestDatabase())
await run(
  `insert into role (document_id, name, created_at, updated_at) values (gen_random_uuid(), 'account-admin', now(), now())
     on conflict do nothing`,
)
beforeEach(async () => {
  for (const table of ['mail_outbox', 'webhook_mail_setting']) await run(`delete from ${table}`)
  account = randomUUID() as AccountId
  await run(
    `insert into account (document_id, name, created_at, updated_at) values ($1, 'Acme', now(), now())`,
    ...[account],
  )
  boss = await addMember('account-admin')
})

async function addMember(role?: string): Promise<UserId> {
  const [user, member] = [randomUUID(), randomUUID()]
  await run(
    `insert into "user" (document_id, email, email_verified_at, created_at, updated_at) values ($1, $2, now(), now(), now())`,
    ...[user, `${user}@b.test`],
  )
  await run(
    'insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, now(), now())',
    ...[member, account, user],
  )
  await run(
    'insert into account_member_role (member, role, created_at) select $1, document_id, now() from role where name = $2',
    ...[member, role ?? ''],
  )
  return user as UserId
}

function noticeOf(kind: MailKind, contacts: UserId[] = []): DueNotice {
  return {
    ...{ webhook: randomUUID() as WebhookId, kind, dispatch: randomUUID() as DispatchId, contacts },
    ...{ name: `Hook ${kind}`, lastError: null, lastStatusCode: 410, url: 'https://hooks.example/' },
    ...{ noticedAt: now, holds: true, isTold: false },
  }
}

/** Writes the mails; `texts` has their contents. */
function write(told: readonly DueNotice[]): Promise<number> {
  texts = []
  const deps = {
    ids: buildIdMaker(clock, systemRandom),
    keyring: {
      deriveKeys: keyring.deriveKeys,
      seal: (text: string, context: string) => {
        texts.push(text)
        return keyring.seal(text, context)
      },
    },
    ...{ baseUrl: () => 'https://signalbox.test', serviceName: 'Signalbox' },
  }
  return inTransaction(database.db, (tx) => writeNoticeMails(deps, tx, { account, accountName: 'Acme', told, now }))
}

const readMails = () =>
  run(
    `select r."user", r.account, r.webhooks, o.recipient, o.kind, o.expires_at from mail_outbox o
     join webhook_mail_recipient r on r.mail = o.document_id order by o.document_id`,
  )
const readHeld = async () =>
  Object.fromEntries(
    (await run('select "user", held_notices from webhook_mail_setting')).map((row) => [row.user, row.held_notices]),
  )
const hold = (user: UserId, notices: number) =>
  run(
    `insert into webhook_mail_setting ("user", held_notices, created_at, updated_at) values ($1, $2, now(), now())
     on conflict ("user") do update set held_notices = $2`,
    ...[user, notices],
  )
/** Leaves room for so many mails to the address of a user. */
const fill = (user: UserId, left: number) =>
  run(
    `insert into mail_outbox (document_id, kind, recipient, status, due_at, expires_at, created_at, ended_at)
     select gen_random_uuid(), 'webhook', $1, 'sent', now(), now(), now(), now() from generate_series(1, $2)`,
    ...[`${user}@b.test`, ROOM - left],
  )

test('a mail of each kind is written to each reader, about its webhooks alone, and expires after a day', async () => {
  const contact = await addMember()
  const [failing, disabled] = [noticeOf('failing', [contact]), noticeOf('disabled')]
  expect(await write([failing, disabled])).toBe(3)
  const expiresAt = new Date(now.getTime() + 86_400_000)
  const mailOf = (user: UserId, webhooks: WebhookId[]) => ({
    ...{ user, account, webhooks, recipient: `${user}@b.test`, kind: 'webhook', expires_at: expiresAt },
  })
  const mails = await readMails()
  expect(mails).toHaveLength(3)
  for (const mail of [
    mailOf(boss, [failing.webhook]),
    mailOf(boss, [disabled.webhook]),
    mailOf(contact, [failing.webhook]),
  ])
    expect(mails).toContainEqual(mail)
  expect(texts.every((text) => text.includes('Acme'))).toBe(true)
  // Nothing was held back, so nothing is kept of a user.
  expect(await readHeld()).toEqual({})
})

test('a user gets the mail in the language that it chose', async () => {
  await changeMailSetting(database.db, boss, { language: 'de' }, now)
  await write([noticeOf('failing')])
  expect(JSON.parse(texts[0] ?? '{}')).toMatchObject({ parts: { lang: 'de' } })
})

test('no mail is written of nothing', async () => {
  expect(await write([])).toBe(0)
  expect(await readMails()).toEqual([])
})

test('the first mail of a user alone tells what was held back before, and it is told once', async () => {
  await hold(boss, 3)
  expect(await write([noticeOf('failing'), noticeOf('disabled')])).toBe(2)
  expect(texts.filter((text) => text.includes('held back'))).toHaveLength(1)
  expect(texts[0]).toMatch(/held back, since many mails had gone to this address: 3\./)
  expect(await readHeld()).toEqual({ [boss]: 0 })
})

test('a user who wants none of these mails keeps what was held back', async () => {
  const notice = noticeOf('failing')
  await changeMailSetting(database.db, boss, { stoppedWebhooks: [notice.webhook] }, now)
  await hold(boss, 3)
  expect(await write([notice])).toBe(0)
  expect(await readHeld()).toEqual({ [boss]: 3 })
})

test('beyond the room of an address mails are held back, and counted by notices', async () => {
  await fill(boss, 1)
  await hold(boss, 4)
  const told = [noticeOf('disabled'), noticeOf('failing'), noticeOf('disabled')]
  expect(await write(told)).toBe(1)
  expect(texts[0]).toMatch(/address: 4\./)
  expect((await readMails()).map(({ webhooks }) => webhooks)).toEqual([[told[1]?.webhook]])
  expect(await readHeld()).toEqual({ [boss]: 2 })
  expect(await write(told)).toBe(0)
  expect(await readHeld()).toEqual({ [boss]: 5 })
})
