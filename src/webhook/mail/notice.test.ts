import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type ContractFixture,
  type ContractWebhook,
  expectProblem,
  type Json,
  NO_ONE,
  startContractFixture,
} from '../../../test/contract/contract-fixture.ts'
import { createTestApp, type TestAnswer } from '../../../test/harness/app/app.ts'
import { TEST_SECRETS } from '../../../test/harness/app/test-secrets.ts'
import { buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { buildNoticeWorker, COLLECT_S, NOTICES_LIMIT, PACE_S, READERS_LIMIT } from './notice-worker.ts'

const HOOKS = '/api/v3/webhook/webhook'
const SETTING = '/api/v3/webhook/mail-setting'

let fixture: ContractFixture
let account: string
/** The administrator of the account. */
let boss: Awaited<ReturnType<typeof signInWithRoles>>
let hook: ContractWebhook

const sql = async (text: string, values: unknown[] = []) => (await fixture.app.database.pool.query(text, values)).rows
/** By the key of the administrator: its session ends while the clock moves. */
async function signInWithRoles(accounts: readonly string[], names: readonly string[]) {
  const user = await fixture.app.signInMember()
  const roles = await Promise.all(names.map(fixture.findRoleId))
  for (const one of accounts) {
    const body = { user: user.userId, roles }
    expect(await fixture.app.admin('POST', `/api/v3/identity/account/${one}/member`, body)).toMatchObject({
      status: 201,
    })
  }
  return user
}
const emailOf = async (user: string) => (await sql('select email from "user" where document_id = $1', [user]))[0].email

beforeAll(async () => {
  fixture = await startContractFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(async () => {
  await sql('delete from mail_outbox')
  await sql('delete from kept_mail')
  await sql('delete from webhook_mail_notice')
  await sql('delete from webhook_mail_turn')
  await sql('update webhook set deleted_at = created_at where deleted_at is null')
  account = (await fixture.createAccount()).document_id
  boss = await signInWithRoles([account], ['account-admin'])
  hook = await fixture.createWebhook({ account }, ['contract.create'])
})

const setFailures = (count: number, id = hook.id) =>
  sql('update webhook set consecutive_failures = $2 where document_id = $1', [id, count])

/** Makes one delivery of the account end, with this status, after `count` failures in a row of each webhook. */
async function deliver(status: number, count?: number, hooks: readonly ContractWebhook[] = [hook]): Promise<void> {
  if (count !== undefined) for (const { id } of hooks) await setFailures(count, id)
  fixture.receiver.behave({ kind: 'status', status })
  await fixture.makeChange(account)
  await fixture.app.settle()
}

const advance = (seconds: number) => fixture.app.clock.advance(seconds * 1_000)

/** Writes and sends the mails that are due; returns those sent since the last time, by recipient. */
async function takeMails(): Promise<Json[]> {
  await fixture.app.app.noticeWorker.drain()
  await fixture.app.app.mailWorker.drain()
  const { body } = await fixture.app.anonymous('GET', '/auth/mail')
  await sql('delete from kept_mail')
  return body.data.sort((a: Json, b: Json) => (a.to + a.subject < b.to + b.subject ? -1 : 1))
}

/** The mails of what happened, once it is collected. */
const collect = async () => {
  advance(COLLECT_S)
  return takeMails()
}

const subjectsOf = (mails: readonly Json[]) =>
  mails.map(({ subject }) => subject.split(' at ')[0].replace(/".*?"/g, 'X'))
const unsubscribeOf = (mail: Json) => new URL(/https?:\S+webhook-mail\S+/.exec(mail.text)?.[0] ?? '')

describe('a mail about a webhook', () => {
  test('is sent at the 15th failed delivery in a row, not at the 14th, and once an incident', async () => {
    await deliver(410, 13)
    expect(await collect()).toEqual([])
    await deliver(410)
    const [mail, ...others] = await collect()
    expect(others).toEqual([])
    expect(mail.to).toBe(await emailOf(boss.userId))
    const [row] = (await fixture.readLedger(hook)).slice(-1)
    expect(mail.text).toContain('15 deliveries in a row to the webhook "127. 0. 0. 1: ')
    expect(mail.text).toContain('HTTP 410')
    expect(mail.text).toContain(`/console/deliveries/${row.document_id}\n`)
    await deliver(410)
    advance(PACE_S)
    expect(await collect()).toEqual([])
  })

  test('of a count that falls and rises again within one incident is not sent again', async () => {
    await deliver(410, 14)
    expect(await collect()).toHaveLength(1)
    await deliver(410, 14)
    advance(PACE_S)
    expect(await collect()).toEqual([])
  })

  test('tells of the recovery, and of the next incident', async () => {
    await deliver(410, 14)
    expect(subjectsOf(await collect())).toEqual(['The webhook X is failing'])
    await deliver(200)
    advance(PACE_S)
    const [recovered, ...others] = await takeMails()
    expect(others).toEqual([])
    expect(recovered.text).toContain('accepts deliveries again')
    expect(recovered.text).not.toContain('HTTP 200')
    await deliver(200, 9)
    await deliver(410, 14)
    advance(PACE_S)
    expect(subjectsOf(await takeMails())).toEqual(['The webhook X is failing'])
  })

  test('is none for a webhook that recovers before the mail is written, nor for one of which nobody was told', async () => {
    await deliver(410, 14)
    await deliver(200)
    expect(await collect()).toEqual([])
    await deliver(410, 11)
    await deliver(200)
    advance(PACE_S)
    expect(await collect()).toEqual([])
    expect(await sql('select * from webhook_mail_notice')).toEqual([])
  })

  test('tells that it was disabled, instead of failing when both are due, and of each disabling', async () => {
    await deliver(410, 14)
    await deliver(410, 19)
    expect(subjectsOf(await collect())).toEqual(['The webhook X was disabled'])
    expect(await fixture.readWebhook(hook)).toMatchObject({ is_actived: false })
    await fixture.app.admin('PATCH', `${HOOKS}/${hook.id}/active`, { is_actived: true })
    await deliver(410, 14)
    advance(PACE_S)
    expect(subjectsOf(await takeMails())).toEqual(['The webhook X is failing'])
    await deliver(410, 19)
    advance(PACE_S)
    expect(subjectsOf(await takeMails())).toEqual(['The webhook X was disabled'])
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
      advance(PACE_S)
      expect(await collect()).toEqual([])
    }
    hook = await fixture.createWebhook({ account }, ['contract.create'])
    await deliver(410, 19)
    expect((await fixture.app.admin('PATCH', `${HOOKS}/${hook.id}/active`, { is_actived: true })).status).toBe(200)
    advance(PACE_S)
    expect(await collect()).toEqual([])
  })

  test('is none for the webhooks of a deleted account, written or not', async () => {
    await deliver(410, 14)
    advance(COLLECT_S)
    await fixture.app.app.noticeWorker.drain()
    const second = await fixture.createWebhook({ account }, ['contract.create'])
    await deliver(410, 14, [second])
    expect((await fixture.app.admin('DELETE', `/api/v3/identity/account/${account}`)).status).toBe(200)
    advance(PACE_S)
    expect(await takeMails()).toEqual([])
    expect(await sql('select status, last_error from mail_outbox')).toEqual([
      { status: 'failed', last_error: 'not wanted' },
    ])
  })

  test('of a global webhook is none: operators have alerts', async () => {
    hook = await fixture.createWebhook({ is_global: true }, ['contract.create'])
    await deliver(410, 19)
    expect(await collect()).toEqual([])
    expect(await sql('select * from webhook_mail_notice')).toEqual([])
  })

  test('shows a name as quoted text: no link, no line, no hidden character', async () => {
    const name = 'pay\u202eevil.example/x https://evil.example\u2028<b>{{link}} {service}'
    expect((await fixture.app.admin('PATCH', `${HOOKS}/${hook.id}`, { name })).status).toBe(200)
    await deliver(410, 14)
    const [mail] = await collect()
    expect(mail.subject).not.toMatch(/\u202e|\u2028|[\r\n]/)
    expect(mail.text).not.toContain('evil.example')
    expect(mail.text).toContain('{{link}} {service}')
  })
})

describe('who gets a mail', () => {
  test('administrators of the account, and the contacts of the webhook that are members, once each', async () => {
    const viewer = await signInWithRoles([account], ['account-viewer'])
    const developer = await signInWithRoles([account], ['account-developer'])
    const second = await signInWithRoles([account], ['account-admin'])
    const contacts = [viewer.userId, boss.userId]
    expect((await fixture.app.admin('PATCH', `${HOOKS}/${hook.id}`, { contacts })).body.data.contacts).toEqual(contacts)
    await deliver(410, 14)
    const mails = await collect()
    const wanted = await Promise.all([boss, second, viewer].map(({ userId }) => emailOf(userId)))
    expect(mails.map(({ to }) => to)).toEqual(wanted.sort())
    expect(mails.map(({ to }) => to)).not.toContain(await emailOf(developer.userId))
  })

  test('a contact gets those of its webhooks alone', async () => {
    const viewer = await signInWithRoles([account], ['account-viewer'])
    const other = await fixture.createWebhook({ account }, ['contract.create'])
    await fixture.app.admin('PATCH', `${HOOKS}/${hook.id}`, { contacts: [viewer.userId], name: 'mine' })
    await deliver(410, 14, [hook, other])
    const mails = await collect()
    const email = await emailOf(viewer.userId)
    expect(subjectsOf(mails.filter(({ to }) => to === email))).toEqual(['The webhook X is failing'])
    expect(subjectsOf(mails.filter(({ to }) => to !== email))).toEqual(['2 webhooks of X are failing'])
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
        await sql('delete from webhook_mail_notice')
        await sql('delete from webhook_mail_turn')
        const user = await signInWithRoles([account], ['account-admin'])
        const email = await emailOf(user.userId)
        await deliver(410, 14)
        advance(COLLECT_S)
        if (isWritten) await fixture.app.app.noticeWorker.drain()
        expect(await end(user.userId)).toMatchObject({ status: 200 })
        const sent = (await takeMails()).map(({ to }) => to)
        expect(sent, `${end} ${isWritten}`).toContain(await emailOf(boss.userId))
        expect(sent, `${end} ${isWritten}`).not.toContain(email)
      }
  })

  test('nobody at an address that is not verified', async () => {
    await sql('update "user" set email_verified_at = null where document_id = $1', [boss.userId])
    await deliver(410, 14)
    expect(await collect()).toEqual([])
  })

  test('is limited to the first hundred users', async () => {
    await sql(
      `with u as (insert into "user" (document_id, email, email_verified_at, created_at, updated_at)
         select gen_random_uuid(), 'many-' || n || '@example.com', now(), now(), now() from generate_series(1, 150) n returning *),
       m as (insert into account_member (document_id, account, "user", created_at, updated_at)
         select gen_random_uuid(), $1, document_id, now(), now() from u returning *)
       insert into account_member_role (member, role, created_at)
       select document_id, (select document_id from role where name = 'account-admin'), now() from m`,
      [account],
    )
    await deliver(410, 14)
    advance(COLLECT_S)
    expect(await fixture.app.app.noticeWorker.drain()).toBe(READERS_LIMIT)
  })
})

describe('many webhooks of an account', () => {
  test('that fail together are one mail, and the next one comes ten minutes later', async () => {
    const hooks = [hook]
    for (let n = 0; n < 22; n += 1) hooks.push(await fixture.createWebhook({ account }, ['contract.create']))
    await deliver(410, 14, hooks)
    const [mail, ...others] = await collect()
    expect(others).toEqual([])
    expect(mail.subject).toContain('23 webhooks of "Acme" are failing')
    expect(mail.text.match(/"127/g)).toHaveLength(20)
    expect(mail.text).toContain(' and 3 more')
    expect(mail.text).toContain(`/console/webhooks?account=${account}`)
    await deliver(410, 19, hooks)
    expect(await collect()).toEqual([])
    advance(PACE_S - COLLECT_S - 1)
    expect(await takeMails()).toEqual([])
    advance(1)
    expect(subjectsOf(await takeMails())).toEqual(['23 webhooks of X were disabled'])
  })

  test('wait for nobody else: each account has its turn', async () => {
    await deliver(410, 14)
    expect(await collect()).toHaveLength(1)
    const former = account
    account = (await fixture.createAccount()).document_id
    await signInWithRoles([account], ['account-admin'])
    const theirs = await fixture.createWebhook({ account }, ['contract.create'])
    await deliver(410, 14, [theirs])
    expect(await collect()).toHaveLength(1)
    account = former
  })

  test('beyond the notices of one turn are told in the next one', async () => {
    await sql(
      `with w as (insert into webhook (document_id, url, account, is_actived, created_at, updated_at)
         select gen_random_uuid(), 'https://hooks.example.com/', $1, true, now(), now() from generate_series(1, $2) returning *)
       insert into webhook_mail_notice (webhook, kind, account, dispatch, created_at)
       select document_id, 'failing', $1, document_id, $3 from w`,
      [account, NOTICES_LIMIT + 1, new Date(fixture.app.clock.now())],
    )
    expect((await collect()).map(({ subject }) => subject.split(' ')[0])).toEqual([String(NOTICES_LIMIT)])
    expect(await takeMails()).toEqual([])
    advance(PACE_S)
    expect(subjectsOf(await takeMails())).toEqual(['The webhook X is failing'])
    advance(PACE_S)
    expect(await takeMails()).toEqual([])
  })

  test('are told by the next turn when a process breaks while it writes them, and then once', async () => {
    const { app, database, clock } = fixture.app
    await deliver(410, 14)
    advance(COLLECT_S)
    const keyring = {
      seal: () => {
        throw new Error('broken')
      },
      deriveKeys: () => [Buffer.alloc(32)],
    }
    const texts = { baseUrl: app.baseUrl, serviceName: 'Signalbox', logger: pino({ level: 'silent' }) }
    const ids = buildIdMaker(clock, systemRandom)
    const broken = buildNoticeWorker({ db: database.db, ids, clock, keyring, canSendMail: true, ...texts })
    await expect(broken.drain()).rejects.toThrow('broken')
    expect(await sql('select * from mail_outbox')).toEqual([])
    expect(await takeMails()).toHaveLength(1)
    const silent = buildNoticeWorker({ db: database.db, ids, clock, keyring, canSendMail: false, ...texts })
    await deliver(410, 19)
    advance(PACE_S)
    expect(await silent.drain()).toBe(0)
    const early = buildNoticeWorker({
      db: database.db,
      ids,
      clock,
      keyring,
      canSendMail: true,
      isTrusted: () => false,
      ...texts,
    })
    expect(await early.drain()).toBe(0)
    expect(subjectsOf(await takeMails())).toEqual(['The webhook X was disabled'])
  })

  test('are told once, however many processes write the mails', async () => {
    await deliver(410, 14)
    advance(COLLECT_S)
    await using second = await createTestApp({ database: fixture.app.database, clock: fixture.app.clock })
    const written = await Promise.all(
      [fixture.app, second, fixture.app, second].map(({ app }) => app.noticeWorker.drain()),
    )
    expect(written.reduce((sum, count) => sum + count)).toBe(1)
    expect(await takeMails()).toHaveLength(1)
  })
})

describe('stopping', () => {
  const read = async (user = boss) => (await user.call('GET', SETTING)).body.data

  test('by the link of a mail: a GET changes nothing, a POST of a mail program stops them for good', async () => {
    await deliver(410, 14)
    const [mail] = await collect()
    const { pathname, search } = unsubscribeOf(mail)
    const link = `${pathname}${search}`
    const page = await fixture.app.anonymous('GET', link)
    expect([page.status, page.body.includes('Stop these mails')]).toEqual([200, true])
    expect(await read()).toMatchObject({ is_stopped: false })
    const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://mail.example' }
    expect((await fixture.app.anonymous('POST', link, 'List-Unsubscribe=One-Click', headers)).status).toBe(200)
    expect(await read()).toMatchObject({ is_stopped: true })
    await deliver(410, 19)
    advance(PACE_S)
    expect(await takeMails()).toEqual([])
    // Twice is no error.
    expect((await fixture.app.anonymous('POST', link, 'List-Unsubscribe=One-Click', headers)).status).toBe(200)
  })

  test('takes the multipart form of RFC 8058, and no other route does', async () => {
    await deliver(410, 14)
    const { pathname, search } = unsubscribeOf((await collect())[0])
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    const form = '--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b--\r\n'
    expect((await fixture.app.anonymous('POST', `${pathname}${search}`, form, headers)).status).toBe(200)
    expect(await read()).toMatchObject({ is_stopped: true })
    expectProblem(await fixture.app.admin('POST', HOOKS, form, headers), 415, 'unsupported_media_type')
    expect((await fixture.app.anonymous('POST', '/auth/forgot', form, headers)).status).toBe(415)
  })

  test('is refused for every other token, and for a deleted user', async () => {
    await deliver(410, 14)
    const { pathname, searchParams } = unsubscribeOf((await collect())[0])
    const token = searchParams.get('token') as string
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const post = (text: string) =>
      fixture.app.anonymous('POST', `${pathname}?token=${encodeURIComponent(text)}`, '', headers)
    const id = Buffer.from(NO_ONE.replaceAll('-', ''), 'hex')
    const forged = Buffer.concat([id, Buffer.from(token, 'base64url').subarray(16)]).toString('base64url')
    for (const text of ['', 'x', `${token}A`, token.slice(0, -2), forged, '\u0000', 'a'.repeat(4_000)]) {
      expect([400, 410, 422]).toContain((await post(text)).status)
      expect([400, 410, 422]).toContain(
        (await fixture.app.anonymous('GET', `${pathname}?token=${encodeURIComponent(text)}`)).status,
      )
    }
    expect(await read()).toMatchObject({ is_stopped: false })
    await fixture.app.admin('DELETE', `/api/v3/identity/user/${boss.userId}`)
    expect((await post(token)).status).toBe(410)
  })

  test('survives a body of 1 MiB, calls at once and a secret that was rotated', async () => {
    await deliver(410, 14)
    const { pathname, search } = unsubscribeOf((await collect())[0])
    const link = `${pathname}${search}`
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=b', 'text/plain']) {
      const answer = await fixture.app.anonymous('POST', link, 'a'.repeat(1_048_576), { 'content-type': type })
      expect([413, 415]).toContain(answer.status)
    }
    expect(await read()).toMatchObject({ is_stopped: false })
    const { database, clock } = fixture.app
    const secretKey = ['another secret of the service, of 32 bytes', ...TEST_SECRETS.secretKey]
    await using rotated = await createTestApp({ database, clock, secretKey })
    const answers = await Promise.all([
      ...[1, 2, 3].map(() => fixture.app.anonymous('POST', link, 'List-Unsubscribe=One-Click', form)),
      rotated.anonymous('POST', link, 'List-Unsubscribe=One-Click', form),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    const [{ count }] = await sql(
      `select count(*)::int from event_occurrence where event = 'webhook-mail.update' and resource_id = $1`,
      [boss.userId],
    )
    expect(count).toBe(1)
  })

  test('by a key of a portal session is refused: its user is no user here', async () => {
    const path = `/api/v3/identity/account/${account}/portal-session`
    const made = await fixture.app.admin('POST', path, { role: 'account-admin' })
    expect(made.status).toBe(201)
    const token = made.body.data.url.split('#token=')[1]
    const opened = await fixture.app.anonymous('POST', '/api/v3/auth/portal-session/open', { token })
    const call = fixture.app.callAs(opened.body.data.token)
    const contacts = [boss.userId]
    expect((await call('PATCH', `${HOOKS}/${hook.id}`, { contacts })).status).toBe(200)
    expect((await call('PATCH', SETTING, { is_stopped: true })).status).toBe(403)
    expect(await read()).toMatchObject({ is_stopped: false })
  })

  test('of one webhook leaves the mails of the others, and a mail that is written already', async () => {
    const other = await fixture.createWebhook({ account }, ['contract.create'])
    expect((await boss.call('PATCH', SETTING, { stopped_webhooks: [hook.id, hook.id] })).body.data).toMatchObject({
      is_stopped: false,
      stopped_webhooks: [hook.id],
      language: 'en',
    })
    await fixture.app.admin('PATCH', `${HOOKS}/${other.id}`, { name: 'other' })
    await deliver(410, 14, [hook, other])
    advance(COLLECT_S)
    await fixture.app.app.noticeWorker.drain()
    await boss.call('PATCH', SETTING, { stopped_webhooks: [hook.id, other.id] })
    expect(await takeMails()).toEqual([])
    await boss.call('PATCH', SETTING, { stopped_webhooks: [hook.id] })
    await deliver(410, 19, [hook, other])
    advance(PACE_S)
    expect((await takeMails()).map(({ subject }) => subject.split(' at ')[0])).toEqual([
      'The webhook "other" was disabled',
    ])
  })

  test('keeps members that are not sent, also of changes at once, and mails come in the chosen language', async () => {
    const answers = await Promise.all([
      boss.call('PATCH', SETTING, { language: 'de' }),
      boss.call('PATCH', SETTING, { stopped_webhooks: [NO_ONE] }),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(await read()).toMatchObject({ is_stopped: false, stopped_webhooks: [NO_ONE], language: 'de' })
    await deliver(410, 14)
    expect((await collect())[0].subject).toMatch(/^Der Webhook ".*" schlägt bei Signalbox fehl$/)
  })

  test('is the choice of the user alone: not of an API key, of a portal session or of nobody', async () => {
    const key = await boss.call('POST', '/api/v3/identity/api-key', { name: 'narrow', permissions: ['contract:*'] })
    const call = fixture.app.callAs(key.body.data.key)
    for (const method of ['GET', 'PATCH'] as const) {
      const body = method === 'PATCH' ? { is_stopped: true } : undefined
      expectProblem(await call(method, SETTING, body), 409, 'conflict')
      expectProblem(await fixture.app.anonymous(method, SETTING, body), 401, 'unauthenticated')
    }
    expect(await read()).toMatchObject({ is_stopped: false })
  })

  test('refuses what is not a setting', async () => {
    const refused = [
      {},
      { is_stopped: null },
      { language: 'fr' },
      { stopped_webhooks: ['x'] },
      { stopped_webhooks: Array(1_001).fill(NO_ONE) },
      { user: NO_ONE },
    ]
    for (const body of refused) expectProblem(await boss.call('PATCH', SETTING, body), 422, 'validation_failed')
  })
})

describe('contacts', () => {
  const create = (body: Json) =>
    fixture.app.admin('POST', HOOKS, { url: `${fixture.receiver.origin}/contacts`, account, ...body })

  test('are members of the account, ten at most, at creation as at a change', async () => {
    const members = []
    for (let n = 0; n < 10; n += 1) members.push((await signInWithRoles([account], ['account-viewer'])).userId)
    const created = await create({ contacts: members })
    expect([created.status, created.body.data.contacts]).toEqual([201, members])
    const path = `${HOOKS}/${created.body.data.document_id}`
    for (const change of [(body: Json) => create(body), (body: Json) => fixture.app.admin('PATCH', path, body)]) {
      expectProblem(await change({ contacts: [...members, boss.userId] }), 422, 'validation_failed')
      const stranger = expectProblem(await change({ contacts: [boss.userId, NO_ONE] }), 422, 'validation_failed')
      expect(stranger.errors[0]).toMatchObject({ path: 'contacts.1', code: 'no_member' })
      const outsider = await fixture.app.signInMember()
      const refused = expectProblem(await change({ contacts: [outsider.userId] }), 422, 'validation_failed')
      expect(refused.errors[0].message).toBe(stranger.errors[0].message)
    }
    expect((await fixture.app.admin('PATCH', path, { contacts: [] })).body.data.contacts).toEqual([])
  })

  test('are none of a global webhook, and none after a move to another account', async () => {
    const global = { url: `${fixture.receiver.origin}/global`, is_global: true, contacts: [boss.userId] }
    expectProblem(await fixture.app.admin('POST', HOOKS, global), 422, 'validation_failed')
    const id = (await create({ contacts: [boss.userId] })).body.data.document_id
    const other = (await fixture.createAccount()).document_id
    expect((await fixture.app.admin('PATCH', `${HOOKS}/${id}`, { account: other })).body.data.contacts).toEqual([])
    const back = { account, contacts: [boss.userId] }
    expect((await fixture.app.admin('PATCH', `${HOOKS}/${id}`, back)).body.data.contacts).toEqual([boss.userId])
    expect((await fixture.app.admin('PATCH', `${HOOKS}/${id}`, { is_global: true })).body.data.contacts).toEqual([])
  })

  test('cannot be set at a webhook of another account', async () => {
    const theirs = await signInWithRoles([(await fixture.createAccount()).document_id], ['account-admin'])
    const answer = await theirs.call('PATCH', `${HOOKS}/${hook.id}`, { contacts: [theirs.userId] })
    expectProblem(answer, 404, 'not_found')
  })
})
