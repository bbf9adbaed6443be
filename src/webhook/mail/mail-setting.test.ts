import { beforeEach, describe, expect, test } from 'vitest'
import { type ContractWebhook, expectProblem, type Json, NO_ONE } from '../../../test/contract/contract-fixture.ts'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { TEST_SECRETS } from '../../../test/harness/app/test-secrets.ts'
import { openWebhookMails, type WebhookMails } from '../../../test/harness/delivery/webhook-mails.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { COLLECT_S, PACE_S } from './notice-worker.ts'

const HOOKS = '/api/v3/webhook/webhook'
const SETTING = '/api/v3/webhook/mail-setting'

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

const unsubscribeOf = (mail: Json) => new URL(/https?:\S+webhook-mail\S+/.exec(mail.text)?.[0] ?? '')

describe('stopping', () => {
  const read = async (user = boss) => (await user.call('GET', SETTING)).body.data

  test('by the link of a mail: a GET changes nothing, a POST of a mail program stops them for good', async () => {
    await deliver(410, 14)
    const [mail] = await mails.collect()
    const { pathname, search } = unsubscribeOf(mail)
    const link = `${pathname}${search}`
    const page = await fixture.app.anonymous('GET', link)
    expect([page.status, page.body.includes('Stop these mails')]).toEqual([200, true])
    expect(await read()).toMatchObject({ is_stopped: false })
    const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://mail.example' }
    expect((await fixture.app.anonymous('POST', link, 'List-Unsubscribe=One-Click', headers)).status).toBe(200)
    expect(await read()).toMatchObject({ is_stopped: true })
    await deliver(410, 19)
    mails.advance(PACE_S)
    expect(await mails.take()).toEqual([])
    // Twice is no error.
    expect((await fixture.app.anonymous('POST', link, 'List-Unsubscribe=One-Click', headers)).status).toBe(200)
  })

  test('takes the multipart form of RFC 8058, and no other route does', async () => {
    await deliver(410, 14)
    const { pathname, search } = unsubscribeOf((await mails.collect())[0])
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    const form = '--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b--\r\n'
    expect((await fixture.app.anonymous('POST', `${pathname}${search}`, form, headers)).status).toBe(200)
    expect(await read()).toMatchObject({ is_stopped: true })
    expectProblem(await fixture.app.admin('POST', HOOKS, form, headers), 415, 'unsupported_media_type')
    expect((await fixture.app.anonymous('POST', '/auth/forgot', form, headers)).status).toBe(415)
  })

  test('is refused for every other token, and for a deleted user', async () => {
    await deliver(410, 14)
    const { pathname, searchParams } = unsubscribeOf((await mails.collect())[0])
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
    const { pathname, search } = unsubscribeOf((await mails.collect())[0])
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
    const [{ count }] = await mails.sql(
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
    mails.advance(COLLECT_S)
    await fixture.app.app.noticeWorker.drain()
    await boss.call('PATCH', SETTING, { stopped_webhooks: [hook.id, other.id] })
    expect(await mails.take()).toEqual([])
    await boss.call('PATCH', SETTING, { stopped_webhooks: [hook.id] })
    await deliver(410, 19, [hook, other])
    mails.advance(PACE_S)
    expect((await mails.take()).map(({ subject }) => subject.split(' at ')[0])).toEqual([
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
    expect((await mails.collect())[0].subject).toMatch(/^Zustellungen an den Webhook ".*" schlagen bei Signalbox fehl$/)
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
