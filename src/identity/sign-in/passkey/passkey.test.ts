import { sign, X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { BASE_URL, buildIdentityApp, type User } from '../../../../test/harness/app/identity-app.ts'
import {
  type CborValue,
  type Deviation,
  type Registered,
  SoftwareAuthenticator,
} from '../../../../test/harness/browser/software-authenticator.ts'
import { createSelfSigned } from '../../../../test/harness/fakes/tls.ts'
import { whileHeld } from '../../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const PASSWORD = 'correct horse'
const SITE = { origin: BASE_URL, rpId: 'service.test' }
const FACTOR = '/api/v3/auth/factor/passkey'
const LOGIN = '/api/v3/auth/login'
const STEP_UP = '/api/v3/auth/session/step-up'

const app = await openForFile(buildIdentityApp())
const root = await app.administrator()

let count = 0
interface PasskeyUser extends User {
  device: SoftwareAuthenticator
  address: string
  recoveryCodes: string[]
  passkeyId: string
}

const optionsOf = async (path: string, request: { token?: string; address: string; body?: object }) => {
  const reply = await app.call('POST', path, request)
  expect(reply.status).toBe(200)
  return reply.body.data.options
}
async function register(user: User, device: SoftwareAuthenticator, deviation: Deviation = {}) {
  const { token } = user
  const address = '10.30.0.1'
  const options = await optionsOf(`${FACTOR}/options`, { token, address })
  const body = { name: 'My phone', credential: device.create(options, deviation) }
  return app.call('POST', FACTOR, { token, address, body })
}
/** A user with one passkey. */
async function newcomer(device = new SoftwareAuthenticator(SITE)): Promise<PasskeyUser> {
  count += 1
  const user = await app.user(`passkey-${count}`, [], PASSWORD)
  const reply = await register(user, device)
  expect(reply.status).toBe(201)
  const { document_id: passkeyId, recovery_codes: recoveryCodes } = reply.body.data
  return { ...user, device, address: `10.31.${count}.1`, recoveryCodes, passkeyId }
}
const logIn = (credential: object, address: string) =>
  app.call('POST', `${LOGIN}/passkey`, { address, body: { credential } })
async function logInWith({ device, address }: PasskeyUser, deviation: Deviation = {}) {
  const options = await optionsOf(`${LOGIN}/passkey/options`, { address })
  return logIn(device.get(options, deviation), address)
}
const failed = { status: 401, body: { code: 'second_factor_failed' } }
const notAccepted = { status: 422, body: { errors: [{ path: 'credential', code: 'not_accepted' }] } }
const lastReason = async (address: string) => {
  const path = `/api/v3/audit/log?filters=address|eq|${address}&sort=-created_at&page_size=1`
  return (await app.call('GET', path, { token: root.token })).body.data[0].detail?.reason
}
const readSession = async (token: string) =>
  (await app.call('GET', '/api/v3/auth/session', { token })).body.data.session

describe('registration', () => {
  test('of the first passkey brings recovery codes and makes the session one with a second factor', async () => {
    const owner = await newcomer()
    expect(owner.recoveryCodes).toHaveLength(10)
    expect(await readSession(owner.token)).toMatchObject({ amr: ['hwk', 'mfa'], acr: 'aal2' })
    const { data } = (await app.call('GET', FACTOR, { token: owner.token })).body
    expect(data).toMatchObject([{ name: 'My phone', transports: ['internal'], is_backed_up: false }])
  })

  test('shows the authenticator the name of the user, or the address of one without a name', async () => {
    count += 1
    const owner = await app.user(`named-${count}`, [], PASSWORD)
    const path = `/api/v3/identity/user/${owner.user.id}`
    const showAs = async (name: string | null) => {
      expect((await app.call('PATCH', path, { token: root.token, body: { name } })).status).toBe(200)
      const { user } = await optionsOf(`${FACTOR}/options`, { token: owner.token, address: '10.30.0.1' })
      return [user.name, user.displayName]
    }
    const [email, name] = await showAs('Ada Lovelace')
    expect([email, name]).toEqual([expect.stringContaining('@'), 'Ada Lovelace'])
    expect(await showAs(null)).toEqual([email, email])
  })

  test('of a further passkey leaves the recovery codes, and names the earlier one to the browser', async () => {
    const owner = await newcomer()
    const options = await optionsOf(`${FACTOR}/options`, { token: owner.token, address: '10.30.0.1' })
    expect(options.excludeCredentials).toMatchObject([{ id: owner.device.id.toString('base64url') }])
    const reply = await register(owner, new SoftwareAuthenticator(SITE, { isSynced: true }))
    expect(reply).toMatchObject({ status: 201, body: { data: { recovery_codes: null, is_backed_up: true } } })
  })

  test.each<[string, Deviation]>([
    ['another origin', { origin: 'https://evil.test' }],
    ['a look-alike port', { origin: `${BASE_URL}:8443` }],
    ['another relying party', { rpId: 'evil.test' }],
    ['a frame of another site', { crossOrigin: true }],
    ['an answer to a proof', { type: 'webauthn.get' }],
    ['an absent user', { isUserPresent: false }],
    ['a challenge of nobody', { challenge: Buffer.alloc(32).toString('base64url') }],
    ['a statement that none was asked for', { attestation: () => ({ fmt: 'none', attStmt: new Map([['x', 1]]) }) }],
  ])('is refused with %s', async (_name, deviation) => {
    count += 1
    const owner = await app.user(`refused-${count}`, [], PASSWORD)
    expect(await register(owner, new SoftwareAuthenticator(SITE), deviation)).toMatchObject(notAccepted)
    expect((await app.call('GET', FACTOR, { token: owner.token })).body.data).toEqual([])
  })

  test("is refused with a stranger's certificate, although its signature is right", async () => {
    count += 1
    const owner = await app.user(`refused-${count}`, [], PASSWORD)
    const { key, cert } = await createSelfSigned(['Key Maker'])
    const certificate = new Uint8Array(new X509Certificate(cert).raw)
    const attestation = ({ rpIdHash, clientDataHash, id, point }: Registered) => {
      const signature = sign('sha256', Buffer.concat([Buffer.alloc(1), rpIdHash, clientDataHash, id, point]), key)
      const statement: [string, CborValue][] = [
        ['sig', new Uint8Array(signature)],
        ['x5c', [certificate]],
      ]
      return { fmt: 'fido-u2f', attStmt: new Map(statement) }
    }
    expect(await register(owner, new SoftwareAuthenticator(SITE), { attestation })).toMatchObject(notAccepted)
  })

  test('serves one passkey for a challenge, in the session that asked', async () => {
    count += 1
    const [owner, other] = [await app.user(`one-${count}`), await app.user(`two-${count}`)]
    const address = '10.30.0.1'
    const options = await optionsOf(`${FACTOR}/options`, { token: owner.token, address })
    const send = (token: string) => {
      const body = { name: 'key', credential: new SoftwareAuthenticator(SITE).create(options) }
      return app.call('POST', FACTOR, { token, address, body })
    }
    expect(await send(other.token)).toMatchObject(notAccepted)
    expect((await send(owner.token)).status).toBe(201)
    expect(await send(owner.token)).toMatchObject(notAccepted)
  })

  test('of a credential that another user has is refused', async () => {
    const { device } = await newcomer()
    const other = await app.user(`copier-${count}`)
    expect(await register(other, device)).toMatchObject(notAccepted)
  })
})

describe('sign-in with a passkey alone', () => {
  test('asks for no user, needs user verification, and opens a session of two factors', async () => {
    const user = await newcomer()
    const options = await optionsOf(`${LOGIN}/passkey/options`, { address: user.address })
    expect(options).toMatchObject({ rpId: 'service.test', userVerification: 'required', allowCredentials: [] })
    const reply = await logIn(user.device.get(options), user.address)
    expect(reply).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } })
    expect(reply.body.data.user.document_id).toBe(user.user.id)
    expect(await readSession(reply.body.data.jwt)).toMatchObject({ amr: ['hwk', 'user', 'mfa'], acr: 'aal2' })
  })

  test('says swk of a passkey that is copied between devices, and takes its counter of 0', async () => {
    const user = await newcomer(new SoftwareAuthenticator(SITE, { isSynced: true }))
    expect((await logInWith(user)).status).toBe(200)
    const reply = await logInWith(user)
    expect(await readSession(reply.body.data.jwt)).toMatchObject({ amr: ['swk', 'user', 'mfa'] })
  })

  test.each<[string, Deviation, string]>([
    ['another origin', { origin: 'https://evil.test' }, 'passkey_not_verified'],
    ['another relying party', { rpId: 'evil.test' }, 'passkey_not_verified'],
    ['no user verification', { isUserVerified: false }, 'passkey_not_verified'],
    ['a frame of another site', { crossOrigin: true }, 'passkey_malformed'],
    ['an answer to a registration', { type: 'webauthn.create' }, 'passkey_not_verified'],
    ['a counter that did not grow', { counter: 1 }, 'passkey_counter_regressed'],
    ['a challenge of nobody', { challenge: 'x' }, 'challenge_unknown'],
    ['the user handle of nobody', { userHandle: null }, 'passkey_of_other_person'],
    ['an unknown credential', { id: 'AAAA' }, 'passkey_unknown'],
  ])('is refused with %s', async (_name, deviation, reason) => {
    const user = await newcomer()
    expect(await logInWith(user, deviation)).toMatchObject(failed)
    expect(await lastReason(user.address)).toBe(reason)
  })

  test("is refused with one's own signature for another user's credential or user handle", async () => {
    const [user, victim] = [await newcomer(), await newcomer()]
    const id = victim.device.id.toString('base64url')
    const userHandle = Buffer.from(victim.user.id).toString('base64url')
    expect(await logInWith(user, { id, userHandle })).toMatchObject(failed)
    expect(await logInWith(user, { userHandle })).toMatchObject(failed)
    expect(await logInWith(user, { id })).toMatchObject(failed)
  })

  test('takes an answer once, also of concurrent ones', async () => {
    const user = await newcomer()
    const options = await optionsOf(`${LOGIN}/passkey/options`, { address: user.address })
    const answer = user.device.get(options)
    const replies = await Promise.all([1, 2, 3].map(() => logIn(answer, user.address)))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401, 401])
  })

  test('is refused when the counter grew in another sign-in that was committed meanwhile', async () => {
    const user = await newcomer()
    const reply = await whileHeld(
      app.db,
      async (tx) => {
        await tx.selectFrom('user').select('document_id').where('document_id', '=', user.user.id).forUpdate().execute()
        await tx.updateTable('passkey').set({ counter: 100 }).where('document_id', '=', user.passkeyId).execute()
      },
      () => logInWith(user),
    )
    expect(reply).toMatchObject(failed)
    expect(await lastReason(user.address)).toBe('passkey_counter_regressed')
  })

  test('takes an answer until 5 minutes have passed, from the same network', async () => {
    const user = await newcomer()
    const ask = () => optionsOf(`${LOGIN}/passkey/options`, { address: user.address })
    const [early, late, elsewhere] = [await ask(), await ask(), await ask()]
    expect(await logIn(user.device.get(elsewhere), '10.32.0.1')).toMatchObject(failed)
    app.clock.advance(5 * 60_000 - 1)
    expect((await logIn(user.device.get(early), user.address)).status).toBe(200)
    app.clock.advance(1)
    expect(await logIn(user.device.get(late), user.address)).toMatchObject(failed)
  })

  test('is refused of a disabled user and of a removed passkey', async () => {
    const [disabled, removed] = [await newcomer(), await newcomer()]
    const fresh = await app.administrator(`guard-${count}`)
    await app.call('POST', `/api/v3/identity/user/${disabled.user.id}/disable`, { token: fresh.token })
    expect(await logInWith(disabled)).toMatchObject(failed)
    const path = `${FACTOR}/${removed.passkeyId}`
    expect((await app.call('DELETE', path, { token: fresh.token })).status).toBe(404)
    expect((await app.call('DELETE', path, { token: removed.token })).status).toBe(200)
    expect(await logInWith(removed)).toMatchObject(failed)
    expect(await readSession(removed.token)).toMatchObject({ acr: 'aal1' })
  })
})

describe('a passkey as the second factor', () => {
  async function openStep({ user, address }: PasskeyUser): Promise<string> {
    const body = { email: user.email, password: PASSWORD }
    const reply = await app.call('POST', `${LOGIN}/local`, { address, body })
    expect(reply.body.second_factor.methods).toEqual(['passkey', 'recovery-code'])
    return reply.body.second_factor.challenge
  }

  test('completes a sign-in with a password, without user verification', async () => {
    const owner = await newcomer()
    const { address, device } = owner
    const challenge = await openStep(owner)
    const options = await optionsOf(`${LOGIN}/factor/options`, { address, body: { challenge } })
    expect(options.allowCredentials).toMatchObject([{ id: device.id.toString('base64url') }])
    const body = { challenge, credential: device.get(options, { isUserVerified: false }) }
    const reply = await app.call('POST', `${LOGIN}/factor`, { address, body })
    expect(reply.status).toBe(200)
    expect(await readSession(reply.body.data.jwt)).toMatchObject({ amr: ['pwd', 'hwk', 'mfa'], acr: 'aal2' })
  })

  test('is not proven by the passkey of another user, or by an answer to another question', async () => {
    const [owner, other] = [await newcomer(), await newcomer()]
    const { address } = owner
    const challenge = await openStep(owner)
    const options = await optionsOf(`${LOGIN}/factor/options`, { address, body: { challenge } })
    const send = (credential: object) =>
      app.call('POST', `${LOGIN}/factor`, { address, body: { challenge, credential } })
    expect(await send(other.device.get(options))).toMatchObject(failed)
    const alone = await optionsOf(`${LOGIN}/passkey/options`, { address })
    expect(await send(owner.device.get(alone))).toMatchObject(failed)
    const stepUp = await optionsOf(`${STEP_UP}/options`, { token: owner.token, address })
    expect(await send(owner.device.get(stepUp))).toMatchObject(failed)
  })

  test('gives no options for an unknown challenge', async () => {
    const body = { challenge: 'unknown' }
    expect(await app.call('POST', `${LOGIN}/factor/options`, { body })).toMatchObject(failed)
  })

  test('steps a session up, once for an answer and in that session only', async () => {
    const owner = await newcomer()
    const { token, address, device } = owner
    const other = (await logInWith(owner)).body.data.jwt
    app.clock.advance(11 * 60_000)
    const remove = () => app.call('DELETE', `${FACTOR}/${owner.passkeyId}`, { token })
    expect(await remove()).toMatchObject({ status: 403, body: { code: 'fresh_factor_required' } })
    const ask = () => optionsOf(`${STEP_UP}/options`, { token, address })
    const send = (text: string, credential: object) =>
      app.call('POST', STEP_UP, { token: text, address, body: { credential } })
    expect(await send(other, device.get(await ask()))).toMatchObject(notAccepted)
    const answer = device.get(await ask())
    expect((await send(token, answer)).status).toBe(200)
    expect(await send(token, answer)).toMatchObject(notAccepted)
    expect((await remove()).status).toBe(200)
  })

  test('is sent alone: a body with a code beside it, or with neither, is refused', async () => {
    const { token, address } = await newcomer()
    for (const body of [{}, { code: '123456', credential: new SoftwareAuthenticator(SITE).get({ challenge: 'x' }) }])
      expect(await app.call('POST', STEP_UP, { token, address, body })).toMatchObject({ status: 422 })
  })
})
