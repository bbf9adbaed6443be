import { expect } from 'vitest'
import type { TestCall } from '../app/app.ts'
import type { ManualClock } from '../run/manual-clock.ts'
import { codeOf, decodeBase32 } from './factor-user.ts'
import { SoftwareAuthenticator } from './software-authenticator.ts'

const FACTOR = '/api/v3/auth/factor'
const LOGIN = '/api/v3/auth/login'

/** The service that the users are of. */
interface FactorFixture {
  anonymous: TestCall
  callAs(token: string): TestCall
  clock: ManualClock
  /** Makes a user with a password. */
  newUser(): Promise<{ email: string; password: string }>
}

/** A signed-in user. */
interface SignedIn {
  id: string
  call: TestCall
  email: string
  password: string
}

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
async function succeed(call: TestCall, path: string, body?: unknown): Promise<any> {
  const answer = await call('POST', path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body.data
}

/** Users with second factors, and what their requests need. `site` is that of the passkeys. */
export function buildFactorRequests(fixture: () => FactorFixture, site: { origin: string; rpId: string }) {
  const signIn = async (): Promise<SignedIn> => {
    const { anonymous, callAs, newUser } = fixture()
    const owner = await newUser()
    const { jwt, user } = await succeed(anonymous, `${LOGIN}/local`, owner)
    return { ...owner, id: user.document_id, call: callAs(jwt) }
  }
  const enrol = async (call: TestCall) => decodeBase32((await succeed(call, `${FACTOR}/totp`)).secret)

  /** A user who confirmed an authenticator app. Its next code is of a later step. */
  const withApp = async () => {
    const owner = await signIn()
    const secret = await enrol(owner.call)
    await succeed(owner.call, `${FACTOR}/totp/confirm`, { code: codeOf(fixture(), secret) })
    fixture().clock.advance(30_000)
    return { ...owner, secret }
  }
  const optionsOf = async (call: TestCall, path: string, body?: object) => (await succeed(call, path, body)).options

  const registration = async (call: TestCall) => {
    const device = new SoftwareAuthenticator(site)
    const options = await optionsOf(call, `${FACTOR}/passkey/options`)
    return { device, body: { name: 'My phone', credential: device.create(options) } }
  }
  /** A user with a passkey. */
  const withPasskey = async () => {
    const owner = await signIn()
    const { device, body } = await registration(owner.call)
    return { ...owner, device, passkey: (await succeed(owner.call, `${FACTOR}/passkey`, body)).document_id as string }
  }
  const openStep = async ({ email, password }: SignedIn): Promise<string> => {
    const answer = await fixture().anonymous('POST', `${LOGIN}/local`, { email, password })
    expect(answer.body.code).toBe('second_factor_required')
    return answer.body.second_factor.challenge
  }

  return {
    signIn,
    withApp,
    withPasskey,
    openStep,
    /** The second step of a sign-in with a code. */
    step: async () => {
      const owner = await withApp()
      return { challenge: await openStep(owner), code: codeOf(fixture(), owner.secret) }
    },
    /** The second step of a sign-in with a passkey. */
    passkeyStep: async () => {
      const owner = await withPasskey()
      const challenge = await openStep(owner)
      const options = await optionsOf(fixture().anonymous, `${LOGIN}/factor/options`, { challenge })
      return { challenge, credential: owner.device.get(options) }
    },
    /** The first code of an app that was enrolled. */
    confirmation: async () => {
      const { call } = await signIn()
      return { call, body: { code: codeOf(fixture(), await enrol(call)) } }
    },
    /** A new proof by a code, in a session. */
    stepUp: async () => {
      const { call, secret } = await withApp()
      return { call, body: { code: codeOf(fixture(), secret) } }
    },
    /** A passkey that may be registered. */
    registration: async () => {
      const { call } = await signIn()
      return { call, body: (await registration(call)).body }
    },
    /** A sign-in with a passkey alone. */
    passkeyLogin: async () => {
      const { device } = await withPasskey()
      return { credential: device.get(await optionsOf(fixture().anonymous, `${LOGIN}/passkey/options`)) }
    },
  }
}

export type FactorRequests = ReturnType<typeof buildFactorRequests>
