import { describe, expect, test } from 'vitest'
import { buildIdentityApp } from '../../../../test/harness/app/identity-app.ts'
import { codeOf, decodeBase32, enrolUser } from '../../../../test/harness/browser/factor-user.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { buildKeyring } from '../../../base/keyring.ts'
import { systemRandom } from '../../../base/random.ts'
import { reencryptSecrets } from '../../../delivery/post/reencrypt.ts'
import { openTotpSecret } from './second-factor.ts'
import { findTotp } from './totp-factor.store.ts'
import { TOTP_SECRETS } from './totp-factor.ts'

const PASSWORD = 'correct horse'
const ENROL = '/api/v3/auth/factor/totp'
const CONFIRM = `${ENROL}/confirm`
/** The key of the app under test. */
const KEY = 'the secret that seals in tests, 32 bytes'

const app = await openForFile(buildIdentityApp())

let count = 0
const newcomer = () => {
  count += 1
  return app.user(`enrolling-${count}`, [], PASSWORD)
}
const enrol = (token: string) => app.call('POST', ENROL, { token })
const confirm = (token: string, code: string) => app.call('POST', CONFIRM, { token, body: { code } })
const wrongCode = { status: 422, body: { errors: [{ path: 'code', code: 'wrong_code' }] } }

describe('enrolment', () => {
  test('answers the secret and its address once, not to be cached, and stores it sealed', async () => {
    const { token, user } = await newcomer()
    const reply = await enrol(token)
    expect(reply).toMatchObject({ status: 201, headers: { 'cache-control': 'no-store' } })
    const { secret, otpauth_url: url } = reply.body.data
    expect(secret).toMatch(/^[A-Z2-7]{32}$/)
    expect(new URL(url).searchParams.get('secret')).toBe(secret)
    const read = await app.call('GET', '/api/v3/auth/factor', { token })
    expect(read.body.data).toMatchObject({ totp: { is_confirmed: false }, recovery_codes: 0 })
    expect(JSON.stringify(read.body)).not.toContain(secret)
    const factor = await findTotp(app.db, { userId: user.id })
    expect(factor?.secretEncrypted).not.toContain(decodeBase32(secret).toString('base64url'))
  })

  test('again before the confirmation replaces the secret', async () => {
    const { token, user } = await newcomer()
    const first = decodeBase32((await enrol(token)).body.data.secret)
    app.clock.advance(1000)
    const second = decodeBase32((await enrol(token)).body.data.secret)
    expect(await confirm(token, codeOf(app, first))).toMatchObject(wrongCode)
    expect(await findTotp(app.db, { userId: user.id })).toMatchObject({
      createdAt: new Date(app.clock.now()),
      confirmedAt: null,
    })
    expect((await confirm(token, codeOf(app, second))).status).toBe(200)
  })

  test('is confirmed by its first code, and a later code is a use of it', async () => {
    const address = '10.40.0.2'
    const { token, user, secret } = await enrolUser(app, `using-${count}`, { password: PASSWORD, address })
    const confirmed = (await findTotp(app.db, { userId: user.id }))!
    const body = { code: codeOf(app, secret) }
    const used = await app.call('POST', '/api/v3/auth/session/step-up', { token, address, body })
    expect(used.status).toBe(200)
    const { lastStep, ...rest } = (await findTotp(app.db, { userId: user.id }))!
    expect(lastStep).toBe(confirmed.lastStep! + 1)
    expect(rest).toMatchObject({ confirmedAt: confirmed.confirmedAt, lastUsedAt: new Date(app.clock.now()) })
  })

  test('is a conflict when an app is confirmed', async () => {
    const { token } = await enrolUser(app, `twice-${count}`, { password: PASSWORD, address: '10.40.0.1' })
    expect((await enrol(token)).status).toBe(409)
    expect((await confirm(token, '123456')).status).toBe(409)
  })

  test('is confirmed once by concurrent requests, with ten recovery codes that differ', async () => {
    const { token } = await newcomer()
    const code = codeOf(app, decodeBase32((await enrol(token)).body.data.secret))
    const replies = await Promise.all([1, 2, 3].map(() => confirm(token, code)))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    const codes = replies.find(({ status }) => status === 200)!.body.data.recovery_codes
    expect(new Set(codes).size).toBe(10)
    for (const code of codes) expect(code).toMatch(/^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/)
  })

  test('without an app to confirm or to remove is not found', async () => {
    const { token } = await newcomer()
    expect((await confirm(token, '123456')).status).toBe(404)
    expect((await app.call('DELETE', ENROL, { token })).status).toBe(404)
  })
})

describe('recovery codes', () => {
  test('of an earlier set are of no use after new ones were made', async () => {
    const address = '10.41.0.1'
    const user = await enrolUser(app, `renewing-${count}`, { password: PASSWORD, address })
    const { token } = user
    const renewed = await app.call('POST', '/api/v3/auth/factor/recovery-code', { token })
    const stepUp = (code: string) =>
      app.call('POST', '/api/v3/auth/session/step-up', { token, address, body: { code } })
    expect(await stepUp(user.recoveryCodes[0]!)).toMatchObject(wrongCode)
    expect((await stepUp(renewed.body.data.recovery_codes[0])).status).toBe(200)
    expect(await stepUp(renewed.body.data.recovery_codes[0])).toMatchObject(wrongCode)
  })

  test('are made for nobody without a second factor', async () => {
    const { token } = await newcomer()
    expect((await app.call('POST', '/api/v3/auth/factor/recovery-code', { token })).status).toBe(409)
  })
})

test('a secret under an older key is sealed anew once, and stays the same', async () => {
  const user = await enrolUser(app, `rotating-${count}`, { password: PASSWORD, address: '10.42.0.1' })
  const keyring = buildKeyring(['the next secret that seals in tests, 32 bytes', KEY], systemRandom)
  expect(await reencryptSecrets({ keyring }, app.db, TOTP_SECRETS)).toBeGreaterThan(0)
  expect(await reencryptSecrets({ keyring }, app.db, TOTP_SECRETS)).toBe(0)
  const factor = (await findTotp(app.db, { userId: user.user.id }))!
  expect(factor.secretEncrypted.startsWith(keyring.currentPrefix)).toBe(true)
  expect(openTotpSecret({ keyring }, factor)).toEqual(user.secret)
  expect(openTotpSecret({ keyring: buildKeyring([KEY], systemRandom) }, factor)).toBeUndefined()
})
