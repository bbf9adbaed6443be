import pino from 'pino'
import { beforeEach, describe, expect, test } from 'vitest'
import type { ContractWebhook } from '../../../test/contract/contract-fixture.ts'
import { createTestApp, type TestAnswer } from '../../../test/harness/app/app.ts'
import { openWebhookMails, subjectsOf, type WebhookMails } from '../../../test/harness/delivery/webhook-mails.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { READERS_LIMIT } from './notice-mails.ts'
import { buildNoticeWorker, COLLECT_S, NOTICES_LIMIT, PACE_S } from './notice-worker.ts'

const HOOKS = '/api/v3/webhook/webhook'

let account: string
/** The administrator of the account. */
let boss: Awaited<ReturnType<WebhookMails['signInWithRoles']>>
let hook: ContractWebhook

const mails = await openForFile(openWebhookMails())
const { fixture } = mails
beforeEach(async () => {
  ;({ account, boss, hook } = await mails.begin())
})

const deliver = (status: number, count?: number, hooks: readonly ContractWebhook[] = [hook]) =>
  mails.deliver({ account, hooks, status, ...(count !== undefined && { count }) })

describe('a mail about a webhook', () => {
  test('is sent at the 15th failed delivery in a row, not at the 14th, and once an incident', async () => {
    await deliver(410, 13)
    expect(await mails.collect()).toEqual([])
    await deliver(410)
    const [mail, ...others] = await mails.collect()
    expect(others).toEqual([])
    expect(mail.to).toBe(await mails.emailOf(boss.userId))
    const [row] = (await fixture.readLedger(hook)).slice(-1)
    expect(mail.text).toContain('15 deliveries in a row to the webhook "127. 0. 0. 1: ')
    expect(mail.text).toContain('HTTP 410')
    expect(mail.text).toContain(`/console/deliveries/${row.document_id}\n`)
    await deliver(410)
    mails.advance(PACE_S)
    expect(await mails.collect()).toEqual([])
  })

  test('of a count that falls and rises again within one incident is not sent again', async () => {
    await deliver(410, 14)
    expect(await mails.collect()).toHaveLength(1)
    await deliver(410, 14)
    mails.advance(PACE_S)
    expect(await mails.collect()).toEqual([])
  })

  test('tells of the recovery, and of the next incident', async () => {
    await deliver(410, 14)
    expect(subjectsOf(await mails.collect())).toEqual(['The webhook X is failing'])
    await deliver(200)
    mails.advance(PACE_S)
    const [recovered, ...others] = await mails.take()
    expect(others).toEqual([])
    expect(recovered.text).toContain('accepts deliveries again')
    expect(recovered.text).not.toContain('HTTP 200')
    await deliver(200, 9)
    await deliver(410, 14)
    mails.advance(PACE_S)
    expect(subjectsOf(await mails.take())).toEqual(['The webhook X is failing'])
  })

  test('is none for a webhook that recovers before the mail is written, nor for one of which nobody was told', async () => {
    await deliver(410, 14)
    await deliver(200)
    expect(await mails.collect()).toEqual([])
    await deliver(410, 11)
    await deliver(200)
    mails.advance(PACE_S)
    expect(await mails.collect()).toEqual([])
    expect(await mails.sql('select * from webhook_mail_notice')).toEqual([])
  })

  test('tells that it was disabled, instead of failing when both are due, and of each disabling', async () => {
    await deliver(410, 14)
    await deliver(410, 19)
    expect(subjectsOf(await mails.collect())).toEqual(['The webhook X was disabled'])
    expect(await fixture.readWebhook(hook)).toMatchObject({ is_actived: false })
    await fixture.app.admin('PATCH', `${HOOKS}/${hook.id}/active`, { is_actived: true })
    await deliver(410, 14)
    mails.advance(PACE_S)
    expect(subjectsOf(await mails.take())).toEqual(['The webhook X is failing'])
    await deliver(410, 19)
    mails.advance(PACE_S)
    expect(subjectsOf(await mails.take())).toEqual(['The webhook X was disabled'])
  })

  test('is none of a state that ended before: the webhook was activated, deactivated, deleted, purged or moved', async () => {
    const other = (await fixture.createAccount()).document_id
    const ends: readonly ((id: string) => Promise<TestAnswer>)[] = [
      (id) => fixture.app.admin('PATCH', `${HOOKS}/${id}/active`, { is_actived: false }),
      (id) => fixture.app.admin('DELETE', `${HOOKS}/${id}`),
      (id) => fixture.app.admin('DELETE', `${HOOKS}/${id}/purge`),
      (id) => fixture.app.admin('PATCH', `${HOOKS}/${id}`, { account: other }),
      (id) => fixture.app.admin('PATCH', `${HOOKS}/${id}`, { is_global: true }),
    ]
    for (const end of ends) {
      hook = await fixture.createWebhook({ account }, ['contract.create'])
      await deliver(410, 14)
      expect((await end(hook.id)).status).toBe(200)
      mails.advance(PACE_S)
      expect(await mails.collect()).toEqual([])
    }
    hook = await fixture.createWebhook({ account }, ['contract.create'])
    await deliver(410, 19)
    expect((await fixture.app.admin('PATCH', `${HOOKS}/${hook.id}/active`, { is_actived: true })).status).toBe(200)
    mails.advance(PACE_S)
    expect(await mails.collect()).toEqual([])
  })

  test('is none for the webhooks of a deleted account, written or not', async () => {
    await deliver(410, 14)
    mails.advance(COLLECT_S)
    await fixture.app.app.noticeWorker.drain()
    const second = await fixture.createWebhook({ account }, ['contract.create'])
    await deliver(410, 14, [second])
    expect((await fixture.app.admin('DELETE', `/api/v3/identity/account/${account}`)).status).toBe(200)
    mails.advance(PACE_S)
    expect(await mails.take()).toEqual([])
    expect(await mails.sql('select status, last_error from mail_outbox')).toEqual([
      { status: 'failed', last_error: 'not wanted' },
    ])
  })

  test('is held back beyond the limit of its address, over all accounts, and counted in the next one', async () => {
    const to = await mails.emailOf(boss.userId)
    await mails.sql(
      `insert into mail_outbox (document_id, kind, recipient, status, due_at, expires_at, created_at, ended_at)
       select gen_random_uuid(), 'webhook', $1, 'sent', now(), now(), now(), now() from generate_series(1, 12)`,
      [to.toUpperCase()],
    )
    const second = await fixture.createWebhook({ account }, ['contract.create'])
    await deliver(410, 14, [hook, second])
    expect(await mails.collect()).toEqual([])
    expect(await mails.sql('select held_notices from webhook_mail_setting')).toEqual([{ held_notices: 2 }])
    await deliver(410, 19, [second])
    mails.advance(PACE_S)
    expect(await mails.take()).toEqual([])
    // An hour of the database, not of a process.
    await mails.sql(`update mail_outbox set queued_at = queued_at - interval '1 hour'`)
    await deliver(200)
    mails.advance(PACE_S)
    const [mail, ...others] = await mails.take()
    expect(others).toEqual([])
    expect(mail.text).toContain('held back, since many mails had gone to this address: 3.')
    expect(await mails.sql('select held_notices from webhook_mail_setting')).toEqual([{ held_notices: 0 }])
    await deliver(410, 14)
    mails.advance(PACE_S)
    expect((await mails.take())[0].text).not.toContain('held back')
    await mails.sql('delete from webhook_mail_setting')
  })

  test('shows a name as quoted text: no link, no line, no hidden character', async () => {
    const name = 'pay\u202eevil.example/x https://evil.example\u2028<b>{{link}} {service}'
    expect((await fixture.app.admin('PATCH', `${HOOKS}/${hook.id}`, { name })).status).toBe(200)
    await deliver(410, 14)
    const [mail] = await mails.collect()
    expect(mail.subject).not.toMatch(/\u202e|\u2028|[\r\n]/)
    expect(mail.text).not.toContain('evil.example')
    expect(mail.text).toContain('{{link}} {service}')
  })
})

describe('who gets a mail', () => {
  test('administrators of the account, and the contacts of the webhook that are members, once each', async () => {
    const viewer = await mails.signInWithRoles([account], ['account-viewer'])
    const developer = await mails.signInWithRoles([account], ['account-developer'])
    const second = await mails.signInWithRoles([account], ['account-admin'])
    const contacts = [viewer.userId, boss.userId]
    expect((await fixture.app.admin('PATCH', `${HOOKS}/${hook.id}`, { contacts })).body.data.contacts).toEqual(contacts)
    await deliver(410, 14)
    const sent = await mails.collect()
    const wanted = await Promise.all([boss, second, viewer].map(({ userId }) => mails.emailOf(userId)))
    expect(sent.map(({ to }) => to)).toEqual(wanted.sort())
    expect(sent.map(({ to }) => to)).not.toContain(await mails.emailOf(developer.userId))
  })

  test('a contact gets those of its webhooks alone', async () => {
    const viewer = await mails.signInWithRoles([account], ['account-viewer'])
    const other = await fixture.createWebhook({ account }, ['contract.create'])
    await fixture.app.admin('PATCH', `${HOOKS}/${hook.id}`, { contacts: [viewer.userId], name: 'mine' })
    await deliver(410, 14, [hook, other])
    const sent = await mails.collect()
    const email = await mails.emailOf(viewer.userId)
    expect(subjectsOf(sent.filter(({ to }) => to === email))).toEqual(['The webhook X is failing'])
    expect(subjectsOf(sent.filter(({ to }) => to !== email))).toEqual(['2 webhooks of X are failing'])
  })

  test('nobody who was removed, disabled, deleted, demoted or changed its address since, written or not', async () => {
    const ends: readonly ((user: string) => Promise<unknown>)[] = [
      (user) => fixture.app.admin('DELETE', `/api/v3/identity/account/${account}/member`, { user }),
      (user) => fixture.app.admin('POST', `/api/v3/identity/user/${user}/disable`),
      (user) => fixture.app.admin('DELETE', `/api/v3/identity/user/${user}`),
      (user) => fixture.app.admin('PATCH', `/api/v3/identity/account/${account}/member`, { user, roles: [] }),
      (user) => fixture.app.admin('PATCH', `/api/v3/identity/user/${user}`, { email: `${user}@elsewhere.example` }),
    ]
    for (const end of ends)
      for (const isWritten of [false, true]) {
        await mails.sql('delete from webhook_mail_notice')
        await mails.sql('delete from webhook_mail_turn')
        const user = await mails.signInWithRoles([account], ['account-admin'])
        const email = await mails.emailOf(user.userId)
        await deliver(410, 14)
        mails.advance(COLLECT_S)
        if (isWritten) await fixture.app.app.noticeWorker.drain()
        expect(await end(user.userId)).toMatchObject({ status: 200 })
        const sent = (await mails.take()).map(({ to }) => to)
        expect(sent, `${end} ${isWritten}`).toContain(await mails.emailOf(boss.userId))
        expect(sent, `${end} ${isWritten}`).not.toContain(email)
      }
  })

  test('nobody at an address that is not verified', async () => {
    await mails.sql('update "user" set email_verified_at = null where document_id = $1', [boss.userId])
    await deliver(410, 14)
    expect(await mails.collect()).toEqual([])
  })

  test('is limited to the first hundred users', async () => {
    await mails.sql(
      `with u as (insert into "user" (document_id, email, email_verified_at, created_at, updated_at)
         select gen_random_uuid(), 'many-' || n || '@example.com', now(), now(), now() from generate_series(1, 150) n returning *),
       m as (insert into account_member (document_id, account, "user", created_at, updated_at)
         select gen_random_uuid(), $1, document_id, now(), now() from u returning *)
       insert into account_member_role (member, role, created_at)
       select document_id, (select document_id from role where name = 'account-admin'), now() from m`,
      [account],
    )
    await deliver(410, 14)
    mails.advance(COLLECT_S)
    expect(await fixture.app.app.noticeWorker.drain()).toBe(READERS_LIMIT)
  })
})

describe('many webhooks of an account', () => {
  test('that fail together are one mail, and the next one comes ten minutes later', async () => {
    const hooks = [hook]
    for (let n = 0; n < 22; n += 1) hooks.push(await fixture.createWebhook({ account }, ['contract.create']))
    await deliver(410, 14, hooks)
    const [mail, ...others] = await mails.collect()
    expect(others).toEqual([])
    expect(mail.subject).toContain('23 webhooks of "Acme" are failing')
    expect(mail.text.match(/"127/g)).toHaveLength(20)
    expect(mail.text).toContain(' and 3 more')
    expect(mail.text).toContain(`/console/webhooks?account=${account}`)
    await deliver(410, 19, hooks)
    expect(await mails.collect()).toEqual([])
    mails.advance(PACE_S - COLLECT_S - 1)
    expect(await mails.take()).toEqual([])
    mails.advance(1)
    expect(subjectsOf(await mails.take())).toEqual(['23 webhooks of X were disabled'])
  })

  test('wait for nobody else: each account has its turn', async () => {
    await deliver(410, 14)
    expect(await mails.collect()).toHaveLength(1)
    const former = account
    account = (await fixture.createAccount()).document_id
    await mails.signInWithRoles([account], ['account-admin'])
    const theirs = await fixture.createWebhook({ account }, ['contract.create'])
    await deliver(410, 14, [theirs])
    expect(await mails.collect()).toHaveLength(1)
    account = former
  })

  test('beyond the notices of one turn are told in the next one', async () => {
    await mails.sql(
      `with w as (insert into webhook (document_id, url, account, is_actived, created_at, updated_at)
         select gen_random_uuid(), 'https://hooks.example.com/', $1, true, now(), now() from generate_series(1, $2) returning *)
       insert into webhook_mail_notice (webhook, kind, account, dispatch, created_at)
       select document_id, 'failing', $1, document_id, $3 from w`,
      [account, NOTICES_LIMIT + 1, new Date(fixture.app.clock.now())],
    )
    expect((await mails.collect()).map(({ subject }) => subject.split(' ')[0])).toEqual([String(NOTICES_LIMIT)])
    expect(await mails.take()).toEqual([])
    mails.advance(PACE_S)
    expect(subjectsOf(await mails.take())).toEqual(['The webhook X is failing'])
    mails.advance(PACE_S)
    expect(await mails.take()).toEqual([])
  })

  test('are told by the next turn when a process breaks while it writes them, and then once', async () => {
    const { app, database, clock } = fixture.app
    await deliver(410, 14)
    mails.advance(COLLECT_S)
    const keyring = {
      seal: () => {
        throw new Error('broken')
      },
      deriveKeys: () => [Buffer.alloc(32)],
    }
    const texts = { baseUrl: app.baseUrl, serviceName: 'Signalbox', logger: pino({ level: 'silent' }) }
    const ids = buildIdMaker(clock, systemRandom)
    const parts = { db: database.db, ids, clock, keyring, ...texts }
    const broken = buildNoticeWorker({ ...parts, isTrusted: () => true, canSendMail: true })
    await expect(broken.drain()).rejects.toThrow('broken')
    expect(await mails.sql('select * from mail_outbox')).toEqual([])
    expect(await mails.take()).toHaveLength(1)
    const silent = buildNoticeWorker({ ...parts, isTrusted: () => true, canSendMail: false })
    await deliver(410, 19)
    mails.advance(PACE_S)
    expect(await silent.drain()).toBe(0)
    const early = buildNoticeWorker({ ...parts, isTrusted: () => false, canSendMail: true })
    expect(await early.drain()).toBe(0)
    expect(subjectsOf(await mails.take())).toEqual(['The webhook X was disabled'])
  })

  test('are told once, however many processes write the mails', async () => {
    await deliver(410, 14)
    mails.advance(COLLECT_S)
    await using second = await createTestApp({ database: fixture.app.database, clock: fixture.app.clock })
    const written = await Promise.all(
      [fixture.app, second, fixture.app, second].map(({ app }) => app.noticeWorker.drain()),
    )
    expect(written.reduce((sum, count) => sum + count)).toBe(1)
    expect(await mails.take()).toHaveLength(1)
  })
})
