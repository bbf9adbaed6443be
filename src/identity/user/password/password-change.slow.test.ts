import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { NO_ID } from '../../../../test/harness/app/identity-app.ts'
import { testPasswords } from '../../../../test/harness/app/small-hash.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { SessionId } from '../../../base/id.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import { LOCK_MS } from '../../throttle/login-throttle.ts'
import { checkPasswordChange } from './password-change.ts'

const CHANGE = '/api/v3/auth/password/change'
const PASSWORD = 'correct horse battery'
const NEW = 'another horse battery'

const app = await openForFile(createTestApp({ env: { RATE_LIMIT_STRICT_PER_MINUTE: '100000' } }))

let count = 0
async function createUser() {
  const email = `changer-${count++}@example.com`
  const { body } = await app.admin('POST', '/api/v3/identity/user', { email, password: PASSWORD, name: 'Vera Quill' })
  const signIn = (password = PASSWORD) => app.anonymous('POST', '/api/v3/auth/login/local', { email, password })
  const session = async () => app.callAs((await signIn()).body.data.jwt)
  return { id: body.data.document_id as string, email, signIn, session }
}
const change = (more: object = {}) => ({ current_password: PASSWORD, new_password: NEW, ...more })
const auditOf = async (user: string) =>
  (await app.admin('GET', `/api/v3/audit/log?filters=user|eq|${user}&sort=-created_at`)).body.data.filter(
    (row: { action: string }) => row.action === 'password.change',
  )

describe('a change of the own password', () => {
  test('is a 404 for a user who was deleted since the request was authenticated', async () => {
    const caller = { userId: NO_ID, sessionId: NO_ID as string as SessionId } as Caller
    const asked = { currentPassword: PASSWORD, newPassword: NEW, keepApiKeys: false, keepApps: false }
    const request = { ...asked, caller, address: '10.0.0.1', now: new Date(app.clock.now()) }
    const checked = checkPasswordChange({ passwords: testPasswords }, app.database.db, request)
    await expect(checked).rejects.toMatchObject({ code: 'not_found' })
  })

  test('keeps this session, ends the others with the API keys, and makes the new password the only one', async () => {
    const user = await createUser()
    const [mine, other] = [await user.session(), await user.session()]
    const key = { name: 'key', permissions: ['contract:*'] }
    const asKey = app.callAs((await mine('POST', '/api/v3/identity/api-key', key)).body.data.key)
    const reply = await mine('POST', CHANGE, change())
    expect(reply).toMatchObject({ status: 200, body: { data: { revoked: 1, api_keys_revoked: 1 } } })
    const statuses = [mine, other, asKey].map(async (call) => (await call('GET', '/api/v3/auth/session')).status)
    expect(await Promise.all(statuses)).toEqual([200, 401, 401])
    expect((await user.signIn(PASSWORD)).status).toBe(401)
    expect((await user.signIn(NEW)).status).toBe(200)
    expect(await auditOf(user.id)).toMatchObject([{ outcome: 'success', target: user.id }])
  })

  test('leaves the API keys alone when it says so', async () => {
    const user = await createUser()
    const mine = await user.session()
    const key = { name: 'key', permissions: ['contract:*'] }
    const asKey = app.callAs((await mine('POST', '/api/v3/identity/api-key', key)).body.data.key)
    await mine('POST', CHANGE, change({ keep_api_keys: true }))
    expect((await asKey('GET', '/api/v3/auth/session')).status).toBe(200)
  })

  test('needs the current password: a wrong one changes nothing and is audited', async () => {
    const user = await createUser()
    const mine = await user.session()
    const reply = await mine('POST', CHANGE, change({ current_password: 'not the password' }))
    expect(reply).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'current_password', code: 'wrong_password' }] },
    })
    expect((await user.signIn()).status).toBe(200)
    expect(await auditOf(user.id)).toMatchObject([{ outcome: 'failure', detail: { reason: 'wrong_password' } }])
  })

  test('counts wrong passwords like failed sign-ins, so that a stolen session cannot guess', async () => {
    const user = await createUser()
    const mine = await user.session()
    const statuses = []
    for (let attempt = 0; attempt < 6; attempt += 1)
      statuses.push((await mine('POST', CHANGE, change({ current_password: `guess number ${attempt}` }))).status)
    expect(statuses).toEqual([422, 422, 422, 422, 422, 429])
    expect((await mine('POST', CHANGE, change())).status).toBe(429)
    app.clock.advance(LOCK_MS)
    expect((await mine('POST', CHANGE, change())).status).toBe(200)
  })

  test.each([
    ['password123', 'common'],
    ['veraquill1985', 'personal'],
  ])('refuses the new password %s as %s, before the present one is looked at', async (password, code) => {
    const user = await createUser()
    const mine = await user.session()
    const body = change({ new_password: password, current_password: 'wrong as well' })
    expect(await mine('POST', CHANGE, body)).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'new_password', code }] },
    })
  })

  test('is refused for an API key, for a user without a password, and without a token', async () => {
    const user = await createUser()
    const mine = await user.session()
    const key = { name: 'key', permissions: ['contract:*'] }
    const asKey = app.callAs((await mine('POST', '/api/v3/identity/api-key', key)).body.data.key)
    expect((await asKey('POST', CHANGE, change())).status).toBe(409)
    const { call } = await app.signInMember()
    expect((await call('POST', CHANGE, change())).status).toBe(409)
    expect((await app.anonymous('POST', CHANGE, change())).status).toBe(401)
  })

  test('of two at once with one current password, one succeeds', async () => {
    const user = await createUser()
    const mine = await user.session()
    const replies = await Promise.all(
      ['first phrase of two', 'second phrase of two'].map((password) =>
        mine('POST', CHANGE, change({ new_password: password })),
      ),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 422])
  })

  test('is the same password in every spelling of Unicode', async () => {
    const user = await createUser()
    const mine = await user.session()
    await mine('POST', CHANGE, change({ new_password: 'cafe\u0301 am flussufer' }))
    expect((await user.signIn('caf\u00e9 am flussufer')).status).toBe(200)
  })
})

describe('a password that an administrator sets', () => {
  test('follows the same rules, with the name and the address that the user will have', async () => {
    const user = await createUser()
    const path = `/api/v3/identity/user/${user.id}`
    const codeOf = async (body: object) => (await app.admin('PATCH', path, body)).body.errors?.[0].code
    expect(await codeOf({ password: 'password123' })).toBe('common')
    expect(await codeOf({ password: 'veraquill1985' })).toBe('personal')
    expect(await codeOf({ password: 'max-muster-77', name: 'Max Muster' })).toBe('personal')
    const made = { email: 'fresh.person@example.com', password: 'freshperson1' }
    expect((await app.admin('POST', '/api/v3/identity/user', made)).body.errors?.[0]).toMatchObject({
      path: 'password',
      code: 'personal',
    })
  })
})
