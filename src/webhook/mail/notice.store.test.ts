import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, DispatchId, UserId, WebhookId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { findJudgedMail } from './mail-check.store.ts'
import { changeMailSetting, findMailSetting } from './mail-setting.store.ts'
import {
  deleteOldTurns,
  endMailTurn,
  insertMailRecipients,
  listDueNotices,
  lockDueTurn,
  noteMails,
  queueTurns,
} from './notice.store.ts'
import type { MailKind } from './notice.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000)
const newId = <T extends string>() => randomUUID() as string as T
const PACE = { collectS: 10, paceS: 100, limit: 100 }
const ADMINISTRATOR = 'account-administrator'

const isMailWanted = async (db: Database, asked: Parameters<typeof findJudgedMail>[1]) => {
  const judged = await findJudgedMail(db, asked)
  return (judged?.isReader && judged.isOfHome) ?? false
}

let account: AccountId
let other: AccountId

const database = await openForFile(createTestDatabase())
const { db } = database
beforeEach(async () => {
  await database.pool.query('delete from webhook_mail_turn')
  await database.pool.query('delete from webhook_mail_notice')
  ;[account, other] = [await makeAccount('Mine'), await makeAccount('Other')]
})

async function makeAccount(name: string): Promise<AccountId> {
  const id = newId<AccountId>()
  await db.insertInto('account').values({ document_id: id, name, created_at: NOW, updated_at: NOW }).execute()
  return id
}

async function makeWebhook(of: AccountId | null = account): Promise<WebhookId> {
  const id = newId<WebhookId>()
  const row = {
    document_id: id,
    url: 'https://example.test/',
    account: of,
    is_global: of === null,
    secret_encrypted: '',
  }
  await db
    .insertInto('webhook')
    .values({ ...row, created_at: NOW, updated_at: NOW })
    .execute()
  return id
}

async function note(webhook: WebhookId, given: { kind?: MailKind; of?: AccountId; now?: Date } = {}) {
  const { kind = 'failing', of = account, now = NOW } = given
  const notice = {
    webhook,
    kind,
    account: of,
    dispatch: newId<DispatchId>(),
    lastError: 'http_5xx',
    lastStatusCode: 500,
  }
  await noteMails(db, [notice], now)
}

const dueAt = async (of = account) =>
  (await database.pool.query('select due_at from webhook_mail_turn where account = $1', [of])).rows[0]?.due_at
const take = (now: Date) => inTransaction(db, (tx) => lockDueTurn(tx, { now }))
const list = (of = account, limit = 100) => inTransaction(db, (tx) => listDueNotices(tx, { account: of, limit }))
const NEXT = at(1_000)
const end = async (due: Awaited<ReturnType<typeof list>>, now: Date, nextAt = NEXT) =>
  endMailTurn(db, { account, notices: due, now, nextAt })

describe('the turn of an account', () => {
  test('is due a while after its first notice, once for all of them', async () => {
    const [first, second, foreign] = [await makeWebhook(), await makeWebhook(), await makeWebhook(other)]
    await note(second, { now: at(5) })
    await note(first)
    await note(foreign, { of: other, now: at(3) })
    expect(await queueTurns(db, { ...PACE, limit: 1 })).toBe(1)
    expect([await dueAt(), await dueAt(other)]).toEqual([at(10), undefined])
    expect(await queueTurns(db, PACE)).toBe(2)
    expect([await dueAt(), await dueAt(other)]).toEqual([at(10), at(13)])
    expect(await queueTurns(db, PACE)).toBe(0)
    expect([await take(at(9)), await take(at(10))]).toEqual([undefined, { account, accountName: 'Mine' }])
    await end(await list(), at(10))
    expect(await take(at(13))).toEqual({ account: other, accountName: 'Other' })
  })

  test('comes a pace after its last mails at the earliest, and never later than it was', async () => {
    const [first, second, third] = [await makeWebhook(), await makeWebhook(), await makeWebhook()]
    await note(first)
    await queueTurns(db, PACE)
    await end(await list(), at(50))
    expect(await dueAt()).toBeNull()
    await note(second, { now: at(60) })
    await queueTurns(db, PACE)
    expect(await dueAt()).toEqual(at(150))
    await note(third, { now: at(200) })
    await queueTurns(db, PACE)
    expect(await dueAt()).toEqual(at(150))
    await end(await list(account, 1), at(150), at(400))
    await note(await makeWebhook(), { now: at(300) })
    await queueTurns(db, PACE)
    expect(await dueAt()).toEqual(at(310))
  })

  test('that another process has is not given again', async () => {
    await note(await makeWebhook())
    await queueTurns(db, PACE)
    const taken = await inTransaction(db, async (tx) => {
      expect(await lockDueTurn(tx, { now: at(10) })).toBeDefined()
      return take(at(10))
    })
    expect(taken).toBeUndefined()
  })

  test('comes again for a notice that another transaction had locked, and for those beyond its limit', async () => {
    const [held, free, beyond] = [await makeWebhook(), await makeWebhook(), await makeWebhook()]
    await note(held)
    await note(free, { now: at(1) })
    await note(beyond, { now: at(2) })
    await queueTurns(db, PACE)
    await expect(
      inTransaction(db, async (holder) => {
        await sql`delete from webhook_mail_notice where webhook = ${held}`.execute(holder)
        await inTransaction(db, async (tx) => {
          expect(await lockDueTurn(tx, { now: at(10) })).toBeDefined()
          const due = await listDueNotices(tx, { account, limit: 1 })
          expect(due.map(({ webhook }) => webhook)).toEqual([free])
          await endMailTurn(tx, { account, notices: due, now: at(10), nextAt: NEXT })
        })
        throw new Error('the recovery is not committed')
      }),
    ).rejects.toThrow('the recovery is not committed')
    expect(await dueAt()).toEqual(NEXT)
    expect((await list()).map(({ webhook }) => webhook)).toEqual([held, beyond])
    await end(await list(), NEXT)
    expect(await dueAt()).toBeNull()
  })

  test('comes again for the notice of another kind of a webhook that it told', async () => {
    const webhook = await makeWebhook()
    await note(webhook)
    await database.pool.query(
      `insert into webhook_mail_notice (webhook, kind, account, dispatch, is_queued, created_at)
       values ($1, 'disabled', $2, $1, true, $3)`,
      [webhook, account, at(1)],
    )
    await queueTurns(db, PACE)
    await end(await list(account, 1), at(10))
    expect(await dueAt()).toEqual(NEXT)
    await end(await list(), NEXT)
    expect(await dueAt()).toBeNull()
  })

  test('ends alone, and is forgotten when it ended long ago', async () => {
    await note(await makeWebhook())
    await note(await makeWebhook(other), { of: other })
    await queueTurns(db, PACE)
    await end(await list(), at(20))
    expect([await dueAt(), await dueAt(other)]).toEqual([null, at(10)])
    expect(await deleteOldTurns(db, at(20), 5)).toBe(0)
    expect(await deleteOldTurns(db, at(21), 5)).toBe(1)
    expect([await dueAt(), await dueAt(other)]).toEqual([undefined, at(10)])
  })
})

describe('the notices of a turn', () => {
  const kinds = async () => {
    const { rows } = await database.pool.query(
      'select webhook, kind, mailed_at is not null as is_told from webhook_mail_notice order by created_at',
    )
    return rows.map(({ webhook, kind, is_told: isTold }) => ({ webhook, kind, isTold }))
  }

  test('are those of its account that no mail told, the oldest first', async () => {
    const [first, second, third] = [await makeWebhook(), await makeWebhook(), await makeWebhook()]
    await note(second, { now: at(1) })
    await note(first)
    await note(await makeWebhook(other), { of: other })
    await queueTurns(db, PACE)
    await note(third)
    expect((await list()).map(({ webhook }) => webhook)).toEqual([first, second])
    expect((await list(account, 1)).map(({ webhook }) => webhook)).toEqual([first])
    const told = { kind: 'failing', lastError: 'http_5xx', lastStatusCode: 500, url: 'https://example.test/' }
    expect((await list())[0]).toMatchObject({ ...told, contacts: [], holds: true })
  })

  test('are told where this notice of this kind of this webhook was, at its time', async () => {
    const [first, second] = [await makeWebhook(), await makeWebhook()]
    await note(first)
    await note(second, { now: at(1) })
    await queueTurns(db, PACE)
    const isTold = async () => Object.fromEntries((await list()).map((due) => [due.webhook, due.isTold]))
    const tell = (webhook: WebhookId, kind: MailKind, when: Date) =>
      database.pool.query(
        'insert into webhook_mail_told (webhook, kind, noticed_at, told_at) values ($1, $2, $3, now())',
        [webhook, kind, when],
      )
    await tell(first, 'failing', at(1))
    await tell(first, 'disabled', NOW)
    expect(await isTold()).toEqual({ [first]: false, [second]: false })
    await tell(first, 'failing', NOW)
    expect(await isTold()).toEqual({ [first]: true, [second]: false })
  })

  test('end with it: one of a failing webhook lasts, and is not told again; those of others stay', async () => {
    const [failing, gone, beside] = [await makeWebhook(), await makeWebhook(), await makeWebhook(other)]
    await database.pool.query('update webhook set deleted_at = $2 where document_id = $1', [gone, NOW])
    await note(failing)
    await note(gone, { now: at(1) })
    await note(beside, { of: other, now: at(2) })
    await queueTurns(db, PACE)
    const due = await list()
    expect(due.map(({ holds }) => holds)).toEqual([true, false])
    await end(due, at(20))
    const left = { webhook: beside, kind: 'failing', isTold: false }
    expect(await kinds()).toEqual([{ webhook: failing, kind: 'failing', isTold: true }, left])
    expect(await list()).toEqual([])
    await note(failing, { kind: 'recovered', now: at(30) })
    await queueTurns(db, PACE)
    await end(await list(), at(40))
    expect(await kinds()).toEqual([left])
  })

  test.each<[name: string, kind: MailKind, isHeld: boolean, assignment: string]>([
    ['an active webhook', 'failing', true, 'is_actived = true'],
    ['an inactive webhook', 'failing', false, 'is_actived = false'],
    ['an active webhook', 'disabled', false, 'is_actived = true'],
    ['a disabled webhook', 'disabled', true, `is_actived = false, disabled_reason = 'consecutive-failures'`],
    ['a webhook that a user switched off', 'disabled', false, 'is_actived = false'],
    ['an active webhook', 'recovered', true, 'is_actived = true'],
    ['a deleted webhook', 'failing', false, 'deleted_at = now()'],
    ['a global webhook', 'failing', false, 'is_global = true, account = null'],
  ])('of %s: %s holds: %s', async (_name, kind, isHeld, assignment) => {
    const webhook = await makeWebhook()
    // What was told fails no more with the notice that it recovered.
    if (kind === 'recovered') {
      await note(webhook)
      await database.pool.query('update webhook_mail_notice set mailed_at = now()')
    }
    await note(webhook, { kind })
    await queueTurns(db, PACE)
    await database.pool.query(`update webhook set ${assignment} where document_id = $1`, [webhook])
    expect((await list()).map(({ holds }) => holds)).toEqual([isHeld])
  })

  test('of a webhook that moved, or of a deleted account, do not hold', async () => {
    const [moved, kept] = [await makeWebhook(), await makeWebhook()]
    for (const webhook of [moved, kept]) await note(webhook)
    await queueTurns(db, PACE)
    await database.pool.query('update webhook set account = $2 where document_id = $1', [moved, other])
    const holds = async () => Object.fromEntries((await list()).map((due) => [due.webhook, due.holds]))
    expect(await holds()).toEqual({ [moved]: false, [kept]: true })
    await database.pool.query('update account set deleted_at = now() where document_id = $1', [account])
    expect(await holds()).toEqual({ [moved]: false, [kept]: false })
  })
})

describe('a mail that waits', () => {
  let user: UserId
  let webhook: WebhookId
  let mail: Parameters<typeof isMailWanted>[1]['mail']
  const run = (text: string, ...values: unknown[]) => database.pool.query(text, values)
  const isWanted = (to = 'ada@b.test') =>
    isMailWanted(db, { mail, to, administrator: ADMINISTRATOR, operatorPatterns: ['*:*'] })

  beforeEach(async () => {
    ;[user, mail] = [newId<UserId>(), newId<typeof mail>()]
    await run(`delete from "user" where email = 'ada@b.test'`).catch(() => run(`update "user" set email = document_id`))
    await run(
      `insert into "user" (document_id, email, email_verified_at, created_at, updated_at)
       values ($1, 'ada@b.test', $2, $2, $2)`,
      ...[user, NOW],
    )
    await run(
      'insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, $4, $4)',
      ...[randomUUID(), account, user, NOW],
    )
    webhook = await makeWebhook()
    await run('update webhook set contacts = array[$2::uuid] where document_id = $1', webhook, user)
    await run(
      `insert into mail_outbox (document_id, kind, recipient, due_at, expires_at, created_at)
       values ($1, 'webhook', 'ada@b.test', $2, $2, $2)`,
      ...[mail, NOW],
    )
    await insertMailRecipients(db, [{ mail, user, account, webhooks: [webhook] }])
  })

  test('is wanted at the address of its reader alone', async () => {
    expect([await isWanted(), await isWanted('other@b.test')]).toEqual([true, false])
  })

  test.each([
    ['user is disabled', `update "user" set is_actived = false where document_id = $1`],
    ['user is deleted', `update "user" set deleted_at = now() where document_id = $1`],
    ['address is not verified', `update "user" set email_verified_at = null where document_id = $1`],
    ['user has left the account', `delete from account_member where "user" = $1`],
    ['webhooks name the user no more', `update webhook set contacts = '{}' where contacts @> array[$1::uuid]`],
    ['webhooks are deleted', `update webhook set deleted_at = now() where contacts @> array[$1::uuid]`],
    ['webhooks are global', `update webhook set is_global = true, account = null where contacts @> array[$1::uuid]`],
    [
      'account is deleted',
      `update account set deleted_at = now() where document_id in (select account from account_member where "user" = $1)`,
    ],
  ])('is not wanted once its %s', async (_name, text) => {
    await run(text, user)
    expect(await isWanted()).toBe(false)
  })

  test('is not wanted once the user stopped it, or its webhook', async () => {
    await changeMailSetting(db, user, { stoppedWebhooks: [newId()] }, NOW)
    expect(await isWanted()).toBe(true)
    await changeMailSetting(db, user, { stoppedWebhooks: [webhook] }, NOW)
    expect(await isWanted()).toBe(false)
    await changeMailSetting(db, user, { stoppedWebhooks: [], isStopped: true }, NOW)
    expect(await isWanted()).toBe(false)
  })

  test('has the setting of its user alone, of which only what is named changes', async () => {
    const another = newId<UserId>()
    await run(
      `insert into "user" (document_id, email, created_at, updated_at) values ($1, $2, $3, $3)`,
      ...[another, `${another}@b.test`, NOW],
    )
    const plain = { isStopped: false, stoppedWebhooks: [], language: 'en', createdAt: NOW, updatedAt: NOW }
    expect(await findMailSetting(db, { user })).toEqual(plain)
    const german = { ...plain, language: 'de', createdAt: at(1), updatedAt: at(1) }
    const changed = await changeMailSetting(db, user, { language: 'de' }, at(1))
    expect(changed).toEqual({ setting: german, isChanged: true })
    const stopped = { ...german, isStopped: true, updatedAt: at(2) }
    expect(await changeMailSetting(db, user, { isStopped: true }, at(2))).toEqual({ setting: stopped, isChanged: true })
    expect(await changeMailSetting(db, user, { isStopped: true }, at(3))).toEqual({
      setting: stopped,
      isChanged: false,
    })
    expect([await findMailSetting(db, { user }), await findMailSetting(db, { user: another })]).toEqual([
      stopped,
      plain,
    ])
    await run('update "user" set deleted_at = now() where document_id = $1', another)
    expect(await findMailSetting(db, { user: another })).toBeUndefined()
    expect(await changeMailSetting(db, another, { language: 'de' }, at(4))).toBeUndefined()
  })
})
