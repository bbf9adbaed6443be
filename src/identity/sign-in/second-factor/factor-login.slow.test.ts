import { describe, expect, test } from 'vitest'
import { buildIdentityApp } from '../../../../test/harness/app/identity-app.ts'
import { codeOf, enrolUser as enrol, type FactorUser } from '../../../../test/harness/browser/factor-user.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { verifySessionToken } from '../../session/token/session-token.ts'

const PASSWORD = 'correct horse'

const app = await openForFile(buildIdentityApp())
const root = await app.administrator()

let count = 0
/** A user with a confirmed app, in a network of its own. The clock is a step after the confirming code. */
async function newcomer(): Promise<FactorUser & { address: string }> {
  count += 1
  const address = `10.7.${count}.1`
  return { ...(await enrol(app, `factor-${count}`, { password: PASSWORD, address })), address }
}
const firstStep = (email: string, address: string, password = PASSWORD) =>
  app.call('POST', '/api/v3/auth/login/local', { body: { email, password }, address })
const secondStep = (challenge: string, code: string, address: string) =>
  app.call('POST', '/api/v3/auth/login/factor', { body: { challenge, code }, address })
async function openChallenge(user: { user: { email: string }; address: string }): Promise<string> {
  const reply = await firstStep(user.user.email, user.address)
  expect(reply).toMatchObject({ status: 401, body: { code: 'second_factor_required' } })
  return reply.body.second_factor.challenge
}
const failed = { status: 401, body: { code: 'second_factor_failed' } }
const lastReason = async (address: string) =>
  (
    await app.call('GET', `/api/v3/audit/log?filters=address|eq|${address}&sort=-created_at&page_size=1`, {
      token: root.token,
    })
  ).body.data[0].detail?.reason

describe('two steps', () => {
  test('the right password answers a challenge and its methods, and no token', async () => {
    const user = await newcomer()
    const { status, body, headers } = await firstStep(user.user.email, user.address)
    expect(status).toBe(401)
    expect(headers['cache-control']).toBe('no-store')
    expect(body).toMatchObject({
      code: 'second_factor_required',
      second_factor: {
        challenge: expect.stringMatching(/^[\w-]{43}$/),
        methods: ['totp', 'recovery-code'],
        expires_in: 300,
      },
    })
    expect(JSON.stringify(body)).not.toMatch(/eyJ|sbr_/)
    expect(await lastReason(user.address)).toBe('second_factor_required')
  })

  test('a wrong password of a user with a factor looks like any wrong password', async () => {
    const user = await newcomer()
    const reply = await firstStep(user.user.email, user.address, 'wrong horse')
    expect(reply).toMatchObject({ status: 401, body: { code: 'login_failed' } })
    expect(reply.body.second_factor).toBeUndefined()
  })

  test('a code completes the sign-in with amr pwd, otp, mfa and acr aal2', async () => {
    const user = await newcomer()
    const reply = await secondStep(await openChallenge(user), codeOf(app, user.secret), user.address)
    expect(reply.status).toBe(200)
    expect(reply.headers['cache-control']).toBe('no-store')
    const token = reply.body.data.jwt
    expect(verifySessionToken(app.keys, token, new Date(app.clock.now()))).toMatchObject({ ok: true })
    const { session } = (await app.call('GET', '/api/v3/auth/session', { token })).body.data
    expect(session).toMatchObject({ amr: ['pwd', 'otp', 'mfa'], acr: 'aal2' })
    expect(JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString())).toMatchObject({
      amr: ['pwd', 'otp', 'mfa'],
      acr: 'aal2',
    })
  })

  test('a recovery code completes one sign-in, in any case and spacing', async () => {
    const user = await newcomer()
    const [code] = user.recoveryCodes as [string]
    const typed = ` ${code.toUpperCase().replaceAll('-', ' ')} `
    expect((await secondStep(await openChallenge(user), typed, user.address)).status).toBe(200)
    expect(await secondStep(await openChallenge(user), code, user.address)).toMatchObject(failed)
    expect(await lastReason(user.address)).toBe('recovery_code_wrong')
    const { data } = (await app.call('GET', '/api/v3/auth/factor', { token: user.token })).body
    expect(data.recovery_codes).toBe(9)
  })

  test('a recovery code of another user is refused', async () => {
    const [user, other] = [await newcomer(), await newcomer()]
    expect(await secondStep(await openChallenge(user), other.recoveryCodes[0]!, user.address)).toMatchObject(failed)
  })
})

describe('attacks on the second step', () => {
  test('a code that was accepted is refused at the next sign-in, also in a later step', async () => {
    const user = await newcomer()
    const code = codeOf(app, user.secret)
    expect((await secondStep(await openChallenge(user), code, user.address)).status).toBe(200)
    expect(await secondStep(await openChallenge(user), code, user.address)).toMatchObject(failed)
    expect(await lastReason(user.address)).toBe('code_used')
    app.clock.advance(30_000)
    expect(await secondStep(await openChallenge(user), code, user.address)).toMatchObject(failed)
  })

  test('a challenge completes one sign-in', async () => {
    const user = await newcomer()
    const challenge = await openChallenge(user)
    expect((await secondStep(challenge, codeOf(app, user.secret), user.address)).status).toBe(200)
    app.clock.advance(30_000)
    expect(await secondStep(challenge, codeOf(app, user.secret), user.address)).toMatchObject(failed)
    expect(await lastReason(user.address)).toBe('challenge_used')
  })

  test('of concurrent second steps with one code one succeeds', async () => {
    const user = await newcomer()
    const challenges = [await openChallenge(user), await openChallenge(user)]
    const code = codeOf(app, user.secret)
    const steps = Array.from({ length: 4 }, (_, at) => secondStep(challenges[at % 2]!, code, user.address))
    const statuses = (await Promise.all(steps)).map(({ status }) => status)
    expect(statuses.sort()).toEqual([200, 401, 401, 401])
  })

  test("another user's code does not answer a challenge", async () => {
    const [user, other] = [await newcomer(), await newcomer()]
    const challenge = await openChallenge(user)
    expect(await secondStep(challenge, codeOf(app, other.secret), user.address)).toMatchObject(failed)
  })

  test('a challenge is of no use from another network, and of use from the same /64', async () => {
    const user = await newcomer()
    const challenge = await openChallenge({ ...user, address: '2001:db8:1:1::1' })
    const code = codeOf(app, user.secret)
    expect(await secondStep(challenge, code, '2001:db8:1:2::1')).toMatchObject(failed)
    expect(await lastReason('2001:db8:1:2::1')).toBe('other_network')
    expect((await secondStep(challenge, code, '2001:db8:1:1::2')).status).toBe(200)
  })

  test('a challenge is answered until 5 minutes have passed, and not then', async () => {
    const [early, late] = [await newcomer(), await newcomer()]
    const challenges = [await openChallenge(early), await openChallenge(late)]
    app.clock.advance(5 * 60_000 - 1)
    expect((await secondStep(challenges[0]!, codeOf(app, early.secret), early.address)).status).toBe(200)
    app.clock.advance(1)
    expect(await secondStep(challenges[1]!, codeOf(app, late.secret), late.address)).toMatchObject(failed)
    expect(await lastReason(late.address)).toBe('challenge_expired')
  })

  test('a challenge takes five wrong codes, and then no right one', async () => {
    const user = await newcomer()
    const challenge = await openChallenge(user)
    for (let at = 0; at < 5; at += 1)
      expect(await secondStep(challenge, 'aaaa-aaaa-aaaa-aaaa', user.address)).toMatchObject(failed)
    app.clock.advance(60_000)
    expect(await secondStep(challenge, codeOf(app, user.secret), user.address)).toMatchObject(failed)
    expect(await lastReason(user.address)).toBe('challenge_exhausted')
  })

  test('an unknown challenge fails like a wrong code', async () => {
    const user = await newcomer()
    const wrong = await secondStep(await openChallenge(user), '000000x', user.address)
    const unknown = await secondStep('x'.repeat(43), codeOf(app, user.secret), user.address)
    const { request_id: _, ...first } = wrong.body
    const { request_id: __, ...second } = unknown.body
    expect(second).toEqual(first)
  })

  test('wrong codes lock the user for 15 minutes in every network, and correct passwords do not clear them', async () => {
    const user = await newcomer()
    let failures = 0
    for (let network = 1; failures < 10; network += 1) {
      const address = `10.8.${count}.${network}`
      const challenge = await openChallenge({ ...user, address })
      for (let at = 0; at < 3 && failures < 10; at += 1, failures += 1) {
        expect(await secondStep(challenge, 'aaaa-aaaa-aaaa-aaaa', address)).toMatchObject(failed)
        if (failures < 9) app.clock.advance(60_000)
      }
    }
    const elsewhere = { ...user, address: `10.9.${count}.1` }
    const locked = await secondStep(await openChallenge(elsewhere), codeOf(app, user.secret), elsewhere.address)
    expect(locked).toMatchObject({ status: 429, headers: { 'retry-after': '900' } })
    app.clock.advance(15 * 60_000)
    const challenge = await openChallenge(elsewhere)
    expect((await secondStep(challenge, codeOf(app, user.secret), elsewhere.address)).status).toBe(200)
  })

  test('a password that is changed between the steps ends the sign-in', async () => {
    const user = await newcomer()
    const challenge = await openChallenge(user)
    const path = `/api/v3/identity/user/${user.user.id}`
    const changed = await app.call('PATCH', path, { token: root.token, body: { password: 'another horse battery' } })
    expect(changed.status).toBe(200)
    expect(await secondStep(challenge, codeOf(app, user.secret), user.address)).toMatchObject(failed)
    expect(await lastReason(user.address)).toBe('password_changed')
  })

  test('a user who is disabled between the steps does not sign in', async () => {
    const user = await newcomer()
    const challenge = await openChallenge(user)
    await app.call('POST', `/api/v3/identity/user/${user.user.id}/disable`, { token: root.token })
    expect(await secondStep(challenge, codeOf(app, user.secret), user.address)).toMatchObject(failed)
    expect(await lastReason(user.address)).toBe('disabled')
  })
})
