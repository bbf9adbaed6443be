import { createHash } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { describeCodeInjection, describeEngine, type EngineUnderTest } from '../../../../test/conformance/engine.ts'
import { signParts } from '../../../../test/harness/app/token-issuer.ts'
import { buildOfficialClient } from '../../../../test/harness/fakes/supabase-simulator/official-client.ts'
import { startSupabaseSimulator } from '../../../../test/harness/fakes/supabase-simulator/simulator.ts'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { systemRandom } from '../../../base/random.ts'
import { parseAllowedTargets } from '../../../outbound/guard/callback-url.ts'
import { buildGuardedFetch, GuardedFetchError } from '../../../outbound/guarded-fetch.ts'
import { OwnFault } from '../../../outbound/own-fault/own-fault.ts'
import { type CallbackParameters, type EngineResult, EngineUnavailable } from '../engine.ts'
import { buildSupabaseClient } from './supabase-client.ts'
import { buildSupabaseEngine } from './supabase-engine.ts'

const PROVIDERS = ['google', 'microsoft', 'linkedin', 'discord', 'keycloak', 'acme-sso'] as const
const ADA = { sub: '4711', email: 'ada@example.com', isEmailVerified: true, name: 'Ada Lovelace' }

const guardedFetch = buildGuardedFetch({
  lookup: async () => [],
  rules: { allowHttp: true, allowedPrivateTargets: parseAllowedTargets('127.0.0.1') },
})

const clock = buildManualClock(Date.now())
const simulator = await openForFile(startSupabaseSimulator(() => clock.now()))
const engine = buildSupabaseEngine({
  client: buildSupabaseClient({ url: simulator.url, anonKey: 'anon-key', fetch: guardedFetch }),
  providers: PROVIDERS.map((name) => ({ name, label: name, isEmailTrusted: true })),
  random: systemRandom,
})
beforeEach(() => {
  simulator.fault = undefined
  simulator.user = { ...ADA }
  simulator.rules = { autoConfirms: false, takesMissingAddress: false, takesNobodyNew: false }
  simulator.gatewayKey = undefined
  simulator.off.clear()
})

const callbackOf = (provider: string) => `https://service.test/api/v3/auth/login/oauth/${provider}/callback`

function underTest(provider: string): EngineUnderTest {
  return {
    engine,
    provider,
    callbackUrl: callbackOf(provider),
    now: () => new Date(clock.now()),
    seat: (user) => {
      simulator.user = user
    },
    browse: async (redirectUrl) => {
      const query = new URL(await simulator.browse(redirectUrl)).searchParams
      const read = (name: string) => query.get(name) ?? undefined
      const callback = {
        code: read('code'),
        error: read('error'),
        errorCode: read('error_code'),
        errorDescription: read('error_description'),
      }
      return { state: read('state'), callback, postedName: null }
    },
    missingAddress: 'email_missing',
    breakDown: () => {
      simulator.fault = 'down'
    },
    expected: ({ sub, name = null }) => ({ subject: sub, name }),
  }
}

describe.each(PROVIDERS)('the supabase engine with %s', (name) => {
  describeEngine(name, () => underTest(name))
  describeCodeInjection(name, () => underTest(name))
})

/** One whole sign-in; `between` runs when the browser has come back. */
async function signIn(provider = 'google', between: () => void = () => {}): Promise<EngineResult> {
  const t = underTest(provider)
  const input = { provider, state: 'state-1', callbackUrl: t.callbackUrl, now: t.now() }
  const { redirectUrl, secret } = await engine.start(input)
  const { callback } = await t.browse(redirectUrl)
  between()
  return engine.complete({ ...input, now: t.now(), secret, callback, postedName: null })
}

describe('what is particular to Supabase Auth', () => {
  test('begins each provider under its name there, with PKCE, and with our state in the address to return to', async () => {
    const names = []
    for (const provider of PROVIDERS) {
      await begin(provider)
      const query = simulator.begun.at(-1)!
      expect(query.get('redirect_to')).toBe(`${callbackOf(provider)}?state=state-1`)
      expect([query.get('code_challenge_method'), query.get('code_challenge')?.length]).toEqual(['s256', 43])
      names.push(query.get('provider'))
    }
    expect(names).toEqual(['google', 'azure', 'linkedin_oidc', 'discord', 'keycloak', 'custom:acme-sso'])
  })

  test('asks Microsoft for the address and the name, which the server leaves out', async () => {
    await begin('microsoft')
    expect(simulator.begun.at(-1)?.get('scopes')).toBe('email profile')
  })

  test.each([
    [
      'is off there',
      () => simulator.off.add('google'),
      'Supabase Auth begins no sign-in with google: validation_failed',
    ],
    ['cannot be begun because the server is down', () => (simulator.fault = 'down'), /begins no sign-in with google/],
  ])('a provider that %s is unavailable', async (_name, act, message) => {
    act()
    await expect(begin('google')).rejects.toThrow(message)
    await expect(begin('google')).rejects.toBeInstanceOf(EngineUnavailable)
  })

  test('a server that cannot be reached makes its providers unavailable', async () => {
    const client = buildSupabaseClient({ url: 'http://127.0.0.1:1', anonKey: undefined, fetch: guardedFetch })
    const providers = [{ name: 'google', label: 'Google', isEmailTrusted: true }]
    const unreachable = buildSupabaseEngine({ client, providers, random: systemRandom })
    const input = { provider: 'google', state: 's', callbackUrl: callbackOf('google'), now: new Date(clock.now()) }
    await expect(unreachable.start(input)).rejects.toBeInstanceOf(EngineUnavailable)
  })

  test.each<[reason: string, detail: string, failure: Error]>([
    ['own_fault', 'EMFILE', new GuardedFetchError('EMFILE', 'connect', new OwnFault('EMFILE'))],
    ['provider_fault', 'ECONNRESET', new GuardedFetchError('ECONNRESET', 'reset')],
    ['provider_fault', 'UNKNOWN', new Error('no answer')],
  ])('a completion is refused as %s for %s', async (reason, detail, failure) => {
    const fetch = () => Promise.reject(failure)
    const client = buildSupabaseClient({ url: simulator.url, anonKey: undefined, fetch })
    const failing = buildSupabaseEngine({ client, providers: [], random: systemRandom })
    const input = { provider: 'google', state: 's', callbackUrl: callbackOf('google'), now: new Date(clock.now()) }
    const callback = { code: 'code', error: undefined, errorCode: undefined, errorDescription: undefined }
    expect(await failing.complete({ ...input, secret: { verifier: 'v' }, callback, postedName: null })).toEqual({
      kind: 'refused',
      reason,
      detail,
    })
  })

  test('passes a gateway with a publishable key, which is no JWT', async () => {
    simulator.gatewayKey = 'anon-key'
    expect(await signIn()).toMatchObject({ kind: 'identity' })
    simulator.gatewayKey = 'another-key'
    expect(await signIn()).toMatchObject({ kind: 'refused', reason: 'code_refused' })
  })

  test('takes a user without an address where the server does', async () => {
    simulator.rules.takesMissingAddress = true
    simulator.user = { sub: 'n-1', name: 'No Address' }
    expect(await signIn()).toMatchObject({ identity: { subject: 'n-1', email: null, isEmailVerified: false } })
  })

  test('knows an unverified address, whether the server refuses it or takes it', async () => {
    simulator.user = { ...ADA, sub: 'u-1', email: 'unverified@example.com', isEmailVerified: false }
    expect(await signIn()).toMatchObject({ kind: 'refused', reason: 'email_unverified' })
    simulator.rules.autoConfirms = true
    expect(await signIn()).toMatchObject({ identity: { subject: 'u-1', isEmailVerified: false } })
  })

  test('believes no address of Microsoft without xms_edov, which the server takes for verified', async () => {
    simulator.user = { ...ADA, sub: 'm-1', email: 'tenant@example.com', hasNoEdov: true }
    expect(await signIn('microsoft')).toMatchObject({ identity: { subject: 'm-1', isEmailVerified: false } })
    simulator.user = { ...ADA, sub: 'm-1', email: 'tenant@example.com' }
    expect(await signIn('microsoft')).toMatchObject({ identity: { subject: 'm-1', isEmailVerified: true } })
  })

  test('reads whether an address is verified from the identity of this provider, not from the user', async () => {
    simulator.rules.autoConfirms = true
    simulator.user = { ...ADA, sub: 'v-1', email: 'shared@example.com', isEmailVerified: true }
    await signIn('google')
    // The server links by the unverified address and overwrites the metadata of the user.
    simulator.user = { ...ADA, sub: 'v-2', email: 'shared@example.com', isEmailVerified: false }
    expect(await signIn('linkedin')).toMatchObject({
      identity: { provider: 'linkedin', subject: 'v-2', isEmailVerified: false },
    })
    simulator.user = { ...ADA, sub: 'v-1', email: 'shared@example.com', isEmailVerified: true }
    expect(await signIn('google')).toMatchObject({ identity: { subject: 'v-1', isEmailVerified: true } })
  })

  test('refuses a user who is banned, also one who was banned after the callback', async () => {
    simulator.user = { ...ADA, sub: 'b-1', email: 'banned@example.com' }
    simulator.fault = 'bans before'
    expect(await signIn()).toEqual({ kind: 'refused', reason: 'engine_refused', detail: 'user_banned' })
    simulator.user = { ...ADA, sub: 'b-2', email: 'banned-later@example.com' }
    simulator.fault = 'bans after the callback'
    expect(await signIn()).toEqual({ kind: 'refused', reason: 'engine_refused', detail: 'user_banned' })
  })

  test('refuses a token that was issued to an OAuth client', async () => {
    simulator.fault = 'client token'
    expect(await signIn()).toMatchObject({ reason: 'profile_invalid', detail: 'CLIENT_TOKEN' })
  })

  test('refuses a user without an identity at the provider of the flow', async () => {
    simulator.fault = 'no identity'
    expect(await signIn()).toMatchObject({ reason: 'profile_invalid', detail: 'NO_IDENTITY' })
  })

  test('refuses a code after 5 minutes', async () => {
    expect(await signIn('google', () => clock.advance(300_000))).toMatchObject({
      reason: 'code_refused',
      detail: 'flow_state_expired',
    })
  })

  test('survives an answer that is no JSON', async () => {
    expect(
      await signIn('google', () => {
        simulator.fault = 'answers text'
      }),
    ).toMatchObject({ kind: 'refused', reason: 'provider_fault' })
  })

  test('leaves no session behind', async () => {
    const before = simulator.sessions.size
    await signIn()
    expect(simulator.sessions.size).toBe(before)
  })

  test('takes the tokens of a fragment while they are fresh, and only genuine ones', async () => {
    expect(await completeWith(await obtainTokens('google'))).toMatchObject({ identity: { subject: '4711' } })
    const forged = (await obtainTokens('google')).accessToken
    expect(await completeWith({ accessToken: `${forged.slice(0, -4)}AAAA` })).toMatchObject({ kind: 'refused' })
    const old = await obtainTokens('google')
    clock.advance(601_000)
    expect(await completeWith(old)).toMatchObject({ reason: 'callback_incomplete', detail: 'TOKEN_NOT_FRESH' })
  })
})

/** Begins with a state of our own; the browser does not continue. */
function begin(provider: string) {
  return engine.start({ provider, state: 'state-1', callbackUrl: callbackOf(provider), now: new Date(clock.now()) })
}

/** Tokens in a fragment, as the server gives them to anybody who begins without a challenge. */
async function obtainTokens(provider: string) {
  const query = new URLSearchParams({ provider, redirect_to: callbackOf(provider) })
  const back = await simulator.browse(`${simulator.url}/authorize?${query}`)
  return { accessToken: new URLSearchParams(new URL(back).hash.slice(1)).get('access_token') ?? '' }
}

/** Completes a flow with Google by what reached its callback. */
async function completeWith(callback: CallbackParameters): Promise<EngineResult> {
  const { secret } = await begin('google')
  const input = { provider: 'google', state: 'state-1', callbackUrl: callbackOf('google'), postedName: null }
  return engine.complete({ ...input, secret, callback, now: new Date(clock.now()) })
}

describe('an attacker whose identity the server put together with that of a victim', () => {
  const VICTIM = { ...ADA, sub: 'victim', email: 'victim@example.com' }
  const ATTACKER = { ...ADA, sub: 'attacker', email: 'victim@example.com', isEmailVerified: false }

  beforeEach(() => {
    simulator.rules.autoConfirms = true
    simulator.user = { ...VICTIM }
  })

  test('does not see the challenge, with which the flow could be begun at another provider', async () => {
    const { redirectUrl } = await begin('google')
    const challenge = simulator.begun.at(-1)?.get('code_challenge') ?? ''
    expect(challenge).toHaveLength(43)
    expect(redirectUrl).not.toContain(challenge)
  })

  test('gets nothing by the code of another provider for a flow with the provider of the victim', async () => {
    await signIn('google')
    simulator.user = { ...ATTACKER }
    const code_challenge = createHash('sha256').update('v'.repeat(43)).digest('base64url')
    const query = {
      provider: 'discord',
      redirect_to: callbackOf('google'),
      code_challenge,
      code_challenge_method: 's256',
    }
    const back = await simulator.browse(`${simulator.url}/authorize?${new URLSearchParams(query)}`)
    const code = new URL(back).searchParams.get('code') ?? ''
    expect(code).not.toBe('')
    expect(await completeWith({ code })).toMatchObject({ reason: 'code_refused', detail: 'bad_code_verifier' })
  })

  test('gets nothing by tokens of another provider', async () => {
    await signIn('google')
    simulator.user = { ...ATTACKER }
    expect(await completeWith(await obtainTokens('discord'))).toMatchObject({
      reason: 'profile_invalid',
      detail: 'AMBIGUOUS_IDENTITY',
    })
  })

  test('gets nothing by a token of a password', async () => {
    const claims = { iat: Math.floor(clock.now() / 1000), amr: [{ method: 'password', timestamp: 1 }] }
    const accessToken = signParts({ alg: 'ES256', kid: 'simulator-key' }, claims, simulator.key)
    expect(await completeWith({ accessToken })).toMatchObject({ detail: 'TOKEN_OF_NO_PROVIDER' })
  })

  test('gets nothing by an identity at the same provider, whoever of the two signed in last', async () => {
    await signIn('google')
    simulator.user = { ...ATTACKER }
    const ambiguous = { kind: 'refused', reason: 'profile_invalid', detail: 'AMBIGUOUS_IDENTITY' }
    expect(await signIn('google')).toEqual(ambiguous)
    simulator.user = { ...VICTIM }
    expect(await signIn('google')).toEqual(ambiguous)
  })
})

test('of two identities of a user, both verified, the one of this sign-in counts', async () => {
  const [first, other] = ['first', 'second'].map((sub) => ({ ...ADA, sub, email: 'both@example.com' }))
  for (const user of [first!, other!, first!]) {
    clock.advance(1000)
    simulator.user = user
    expect(await signIn('google')).toMatchObject({ identity: { subject: user.sub, isEmailVerified: true } })
  }
})

describe('the simulator serves the official client', () => {
  async function obtainCode(client: ReturnType<typeof buildOfficialClient>): Promise<string> {
    const options = { redirectTo: 'https://app.example.com/back', skipBrowserRedirect: true }
    const { data } = await client.signInWithOAuth({ provider: 'google', options })
    const back = new URL(await simulator.browse(data.url ?? ''))
    expect(`${back.origin}${back.pathname}`).toBe('https://app.example.com/back')
    return back.searchParams.get('code') ?? ''
  }

  test('for sign-in with PKCE, the user with identities, refresh, and sign-out', async () => {
    // The client compares the expiry of tokens with the clock of the machine.
    clock.set(Date.now())
    const client = buildOfficialClient(simulator)
    const { data, error } = await client.exchangeCodeForSession(await obtainCode(client))
    expect(error).toBeNull()
    expect(data.user?.email).toBe('ada@example.com')
    const user = await client.getUser()
    expect(user.data.user?.identities?.map(({ provider, id }) => [provider, id])).toContainEqual(['google', '4711'])
    const refreshed = await client.refreshSession()
    expect(refreshed.data.session?.refresh_token).not.toBe(data.session?.refresh_token)
    expect((await client.signOut({ scope: 'local' })).error).toBeNull()
    expect((await client.getSession()).data.session).toBeNull()
  })

  test('for its errors: a code serves once, a token must be genuine', async () => {
    const client = buildOfficialClient(simulator)
    const code = await obtainCode(client)
    await client.exchangeCodeForSession(code)
    await obtainCode(client)
    expect((await client.exchangeCodeForSession(code)).error?.code).toBe('flow_state_not_found')
    expect((await client.getUser('not.a.token')).error?.code).toBe('bad_jwt')
  })
})
