import { describe, expect, test } from 'vitest'
import { buildIdentityApp, type User } from '../../../../test/harness/app/identity-app.ts'
import { codeOf, enrolUser, type FactorUser } from '../../../../test/harness/browser/factor-user.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { systemRandom } from '../../../base/random.ts'
import { issueSession } from '../../session/session.ts'

const PASSWORD = 'correct horse'
const TEN_MINUTES = 600_000

const app = await openForFile(buildIdentityApp())
const root = await app.administrator()

let count = 0
async function newcomer(roles: string[] = []): Promise<FactorUser & { address: string }> {
  count += 1
  const address = `10.17.${count}.1`
  return { ...(await enrolUser(app, `stepper-${count}`, { password: PASSWORD, address, roles })), address }
}
const stepUp = (token: string, code: string, address: string) =>
  app.call('POST', '/api/v3/auth/session/step-up', { token, address, body: { code } })
const renewCodes = (token: string) => app.call('POST', '/api/v3/auth/factor/recovery-code', { token })
const readSession = async (token: string) => (await app.call('GET', '/api/v3/auth/session', { token })).body.data
const notFresh = { status: 403, body: { code: 'fresh_factor_required' } }
const wrongCode = { status: 422, body: { errors: [{ path: 'code', code: 'wrong_code' }] } }

/** A second session of a user, by password alone, as one from before the enrolment. */
async function openWeakSession({ user }: User): Promise<string> {
  const deps = { ids: app.ids, keys: app.keys, random: systemRandom }
  const origin = { address: null, userAgent: null }
  const opened = await issueSession(deps, app.db, {
    userId: user.id,
    origin,
    amr: ['pwd'],
    now: new Date(app.clock.now()),
  })
  return opened!.jwt
}

describe('a dangerous route', () => {
  test('asks for the factor again when 10 minutes have passed, and a step-up answers it', async () => {
    const owner = await newcomer()
    app.clock.advance(TEN_MINUTES - 30_000)
    expect((await renewCodes(owner.token)).status).toBe(200)
    app.clock.advance(1)
    expect(await renewCodes(owner.token)).toMatchObject(notFresh)
    const reply = await stepUp(owner.token, codeOf(app, owner.secret), owner.address)
    expect(reply).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } })
    expect((await renewCodes(owner.token)).status).toBe(200)
    expect((await renewCodes(reply.body.data.jwt)).status).toBe(200)
    const { session } = await readSession(owner.token)
    expect(session).toMatchObject({ amr: ['otp', 'mfa'], acr: 'aal2', auth_time: reply.body.data.auth_time })
  })

  test('refuses a new session without a factor of a user who has one', async () => {
    const owner = await newcomer()
    const weak = await openWeakSession(owner)
    const key = { name: 'key', permissions: ['contract:create'] }
    const requests = [
      ['POST', '/api/v3/auth/factor/recovery-code', undefined],
      ['DELETE', '/api/v3/auth/factor/totp', undefined],
      ['POST', '/api/v3/auth/factor/totp', undefined],
      ['POST', '/api/v3/identity/api-key', key],
    ] as const
    for (const [method, path, body] of requests)
      expect(await app.call(method, path, { token: weak, ...(body && { body }) })).toMatchObject(notFresh)
    expect((await stepUp(weak, codeOf(app, owner.secret), owner.address)).status).toBe(200)
    expect((await app.call('POST', '/api/v3/identity/api-key', { token: weak, body: key })).status).toBe(201)
    expect((await readSession(weak)).session).toMatchObject({ amr: ['pwd', 'otp', 'mfa'], acr: 'aal2' })
  })

  test('asks an administrator before a user is made or a role is changed: a stolen session would stay that way', async () => {
    const boss = await newcomer([...root.user.roles])
    const weak = await openWeakSession(boss)
    const user = { email: `accomplice-${count}@example.test`, password: PASSWORD, roles: root.user.roles }
    const role = await app.call('POST', '/api/v3/identity/role', {
      token: weak,
      body: { name: `r-${count}`, permissions: [] },
    })
    const requests = [
      ['POST', '/api/v3/identity/user', user],
      ['PATCH', `/api/v3/identity/role/${role.body.data.document_id}`, { permissions: ['*:*'] }],
    ] as const
    for (const [method, path, body] of requests)
      expect(await app.call(method, path, { token: weak, body })).toMatchObject(notFresh)
    expect((await stepUp(weak, codeOf(app, boss.secret), boss.address)).status).toBe(200)
    for (const [method, path, body] of requests)
      expect((await app.call(method, path, { token: weak, body })).status).toBeLessThan(300)
  })

  test('lets a user without a factor pass, except to the enrolment after an old sign-in', async () => {
    const owner = await app.user('plain', [], PASSWORD)
    app.clock.advance(TEN_MINUTES + 1)
    const body = { name: 'key', permissions: ['contract:create'] }
    expect((await app.call('POST', '/api/v3/identity/api-key', { token: owner.token, body })).status).toBe(201)
    expect(await app.call('POST', '/api/v3/auth/factor/totp', { token: owner.token })).toMatchObject(notFresh)
  })

  test('leaves an audit entry with the reason when it refuses', async () => {
    const weak = await openWeakSession(await newcomer())
    await renewCodes(weak)
    const path = '/api/v3/audit/log?filters=action|eq|recovery-code.renew&sort=-created_at&page_size=1'
    const fresh = await app.administrator(`auditor-${count}`)
    const [entry] = (await app.call('GET', path, { token: fresh.token })).body.data
    expect(entry).toMatchObject({ outcome: 'failure', detail: { reason: 'factor_not_fresh' } })
  })
})

describe('attacks on a step-up', () => {
  test('a code that was used is refused', async () => {
    const user = await newcomer()
    const code = codeOf(app, user.secret)
    expect((await stepUp(user.token, code, user.address)).status).toBe(200)
    expect(await stepUp(user.token, code, user.address)).toMatchObject(wrongCode)
  })

  test('of concurrent step-ups with one code one succeeds', async () => {
    const user = await newcomer()
    const sessions = [user.token, await openWeakSession(user), await openWeakSession(user)]
    const code = codeOf(app, user.secret)
    const replies = await Promise.all(sessions.map((token) => stepUp(token, code, user.address)))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 422, 422])
  })

  test('the codes of an app that was not confirmed prove nothing', async () => {
    const user = await app.user('unconfirmed', [], PASSWORD)
    await app.call('POST', '/api/v3/auth/factor/totp', { token: user.token })
    expect(await stepUp(user.token, '123456', '10.18.0.1')).toMatchObject(wrongCode)
    const login = { email: user.user.email, password: PASSWORD }
    expect((await app.call('POST', '/api/v3/auth/login/local', { body: login })).status).toBe(200)
  })

  test('ten wrong codes lock the user for step-up and sign-in alike', async () => {
    const user = await newcomer()
    for (let at = 0; at < 10; at += 1) {
      expect(await stepUp(user.token, 'aaaa-aaaa-aaaa-aaaa', `10.19.${count}.${at}`)).toMatchObject(wrongCode)
      if (at < 9) app.clock.advance(60_000)
    }
    expect(await stepUp(user.token, codeOf(app, user.secret), user.address)).toMatchObject({ status: 429 })
    const body = { email: user.user.email, password: PASSWORD }
    const first = await app.call('POST', '/api/v3/auth/login/local', { body, address: user.address })
    const { challenge } = first.body.second_factor
    const second = { challenge, code: codeOf(app, user.secret) }
    const reply = await app.call('POST', '/api/v3/auth/login/factor', { body: second, address: user.address })
    expect(reply.status).toBe(429)
  })

  test('an API key proves and enrols nothing', async () => {
    const user = await newcomer()
    const created = await app.call('POST', '/api/v3/identity/api-key', {
      token: user.token,
      body: { name: 'key', permissions: ['contract:create'] },
    })
    const { key } = created.body.data
    expect(await stepUp(key, codeOf(app, user.secret), user.address)).toMatchObject({ status: 409 })
    for (const path of ['/api/v3/auth/factor/totp', '/api/v3/auth/factor/recovery-code'])
      expect((await app.call('POST', path, { token: key })).status).toBe(409)
    expect((await app.call('GET', '/api/v3/auth/factor', { token: key })).status).toBe(409)
  })
})

describe('a role that requires a second factor', () => {
  const path = '/api/v3/identity/role'
  async function newRole(body: object = {}): Promise<string> {
    count += 1
    const permissions = ['role:find-all']
    const reply = await app.call('POST', path, {
      token: root.token,
      body: { name: `strict ${count}`, permissions, requires_second_factor: true, ...body },
    })
    expect(reply).toMatchObject({ status: 201, body: { data: { requires_second_factor: true } } })
    return reply.body.data.document_id
  }

  test('holds in a session with a second factor, and in no other of the same user', async () => {
    const user = await newcomer([await newRole()])
    expect((await app.call('GET', path, { token: user.token })).status).toBe(200)
    const weak = await openWeakSession(user)
    expect((await app.call('GET', path, { token: weak })).status).toBe(403)
    expect((await readSession(weak)).permissions).toEqual([])
    await stepUp(weak, codeOf(app, user.secret), user.address)
    expect((await app.call('GET', path, { token: weak })).status).toBe(200)
  })

  test('leaves a user without a factor a session that enrols one, and then holds', async () => {
    count += 1
    const user = await app.user(`enrolling-${count}`, [await newRole()], PASSWORD)
    expect((await app.call('GET', path, { token: user.token })).status).toBe(403)
    const enrolled = await newcomer([await newRole()])
    expect((await app.call('GET', path, { token: enrolled.token })).status).toBe(200)
  })

  test('does not hold any more when the last factor was removed', async () => {
    const user = await newcomer([await newRole()])
    expect((await app.call('DELETE', '/api/v3/auth/factor/totp', { token: user.token })).status).toBe(200)
    expect((await app.call('GET', path, { token: user.token })).status).toBe(403)
    const { session } = await readSession(user.token)
    expect(session).toMatchObject({ amr: ['otp'], acr: 'aal1' })
    const { data } = (await app.call('GET', '/api/v3/auth/factor', { token: user.token })).body
    expect(data).toEqual({ totp: null, passkeys: 0, recovery_codes: 0 })
  })

  test('begins to count for sessions that exist when the role is changed', async () => {
    const role = await newRole()
    await app.call('PATCH', `${path}/${role}`, { token: root.token, body: { requires_second_factor: false } })
    count += 1
    const user = await app.user(`late-${count}`, [role as never], PASSWORD)
    expect((await app.call('GET', path, { token: user.token })).status).toBe(200)
    const body = { requires_second_factor: true }
    expect((await app.call('PATCH', `${path}/${role}`, { token: root.token, body })).status).toBe(200)
    expect((await app.call('GET', path, { token: user.token })).status).toBe(403)
  })

  test('is changed by nobody who does not hold the role', async () => {
    const role = await newRole({ permissions: ['user:find-all'] })
    const editor = await app.callerWith(`editor-${count}`, ['role:update'])
    const body = { requires_second_factor: false }
    expect((await app.call('PATCH', `${path}/${role}`, { token: editor.token, body })).status).toBe(403)
  })

  test('may be a system role, of which nothing else changes', async () => {
    const roles = (await app.call('GET', `${path}?filters=name|eq|account-viewer`, { token: root.token })).body.data
    const id = roles[0].document_id
    const change = (body: object) => app.call('PATCH', `${path}/${id}`, { token: root.token, body })
    expect((await change({ requires_second_factor: true })).status).toBe(200)
    expect((await change({ requires_second_factor: false, name: 'mine' })).status).toBe(409)
    expect((await change({ requires_second_factor: false })).status).toBe(200)
  })
})

describe('a lost factor', () => {
  const remove = (id: string, token: string) =>
    app.call('POST', `/api/v3/identity/user/${id}/remove-factors`, { token })

  test('is removed by an administrator, with the recovery codes and the lock', async () => {
    const user = await newcomer()
    for (let at = 0; at < 10; at += 1) {
      await stepUp(user.token, 'aaaa-aaaa-aaaa-aaaa', `10.20.${count}.${at}`)
      app.clock.advance(60_000)
    }
    const fresh = await app.administrator(`helper-${count}`)
    expect((await remove(user.user.id, fresh.token)).status).toBe(200)
    const body = { email: user.user.email, password: PASSWORD }
    const login = await app.call('POST', '/api/v3/auth/login/local', { body, address: user.address })
    expect(login.status).toBe(200)
    expect((await app.call('GET', '/api/v3/auth/session', { token: user.token })).status).toBe(401)
    expect((await readSession(login.body.data.jwt)).session.acr).toBe('aal1')
  })

  test('is not removed by someone who holds less than the user', async () => {
    const boss = await newcomer([(await app.administrator(`peer-${count}`)).user.roles[0] as string])
    const helper = await app.callerWith(`desk-${count}`, ['user:remove-factors'])
    const strong = await newcomer()
    expect((await remove(strong.user.id, helper.token)).status).toBe(200)
    const reply = await remove(boss.user.id, helper.token)
    expect(reply.status).toBe(403)
  })
})
