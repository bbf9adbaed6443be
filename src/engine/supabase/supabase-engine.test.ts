import { AuthClient } from '@supabase/auth-js'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { describeCodeInjection, describeEngine, type EngineUnderTest } from '../../../test/conformance/engine.ts'
import { buildManualClock, type ManualClock } from '../../../test/harness/manual-clock.ts'
import { type SupabaseSimulator, startSupabaseSimulator } from '../../../test/harness/supabase-simulator/simulator.ts'
import { parseAllowedTargets } from '../../outbound/callback-url.ts'
import { buildGuardedFetch } from '../../outbound/guarded-fetch.ts'
import { systemRandom } from '../../random.ts'
import type { Engine, EngineResult } from '../engine.ts'
import { buildSupabaseClient } from './supabase-client.ts'
import { buildSupabaseEngine } from './supabase-engine.ts'

const PROVIDERS = ['google', 'microsoft', 'linkedin', 'acme-sso'] as const
const ADA = { sub: '4711', email: 'ada@example.com', isEmailVerified: true, name: 'Ada Lovelace' }

let simulator: SupabaseSimulator
let clock: ManualClock
let engine: Engine

beforeAll(async () => {
  clock = buildManualClock(Date.now())
  simulator = await startSupabaseSimulator(() => clock.now())
  const fetch = buildGuardedFetch({
    lookup: async () => [],
    rules: { allowHttp: true, allowedPrivateTargets: parseAllowedTargets('127.0.0.1') },
  })
  engine = buildSupabaseEngine({
    client: buildSupabaseClient({ url: simulator.url, anonKey: 'anon-key', fetch }),
    providers: PROVIDERS.map((name) => ({ name, label: name, isEmailTrusted: true })),
    random: systemRandom,
  })
})
afterAll(() => simulator[Symbol.asyncDispose]())
beforeEach(() => {
  simulator.fault = undefined
  simulator.person = { ...ADA }
})

const callbackOf = (provider: string) => `https://service.test/api/v3/auth/login/oauth/${provider}/callback`

function underTest(provider: string): EngineUnderTest {
  return {
    engine,
    provider,
    callbackUrl: callbackOf(provider),
    now: () => new Date(clock.now()),
    seat: (person) => {
      simulator.person = person
    },
    browse: async (redirectUrl) => {
      const query = new URL(await simulator.browse(redirectUrl)).searchParams
      const read = (name: string) => query.get(name) ?? undefined
      const callback = { code: read('code'), error: read('error'), errorCode: read('error_code') }
      return { state: read('state'), callback, postedName: null }
    },
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
  test('names its providers, and carries our state in the address that it returns to', async () => {
    const names = ['google', 'microsoft', 'linkedin', 'acme-sso'].map(async (provider) => {
      const input = { provider, state: 's-1', callbackUrl: callbackOf(provider), now: new Date(clock.now()) }
      const query = new URL((await engine.start(input)).redirectUrl).searchParams
      expect(query.get('redirect_to')).toBe(`${callbackOf(provider)}?state=s-1`)
      expect([query.get('code_challenge_method'), query.get('code_challenge')?.length]).toEqual(['s256', 43])
      return query.get('provider')
    })
    expect(await Promise.all(names)).toEqual(['google', 'azure', 'linkedin_oidc', 'custom:acme-sso'])
  })

  test('reads whether an address is verified from the identity of this provider, not from the user', async () => {
    simulator.person = { ...ADA, sub: 'v-1', email: 'shared@example.com', isEmailVerified: true }
    await signIn('google')
    // The server links by the unverified address and overwrites the metadata of the user.
    simulator.person = { ...ADA, sub: 'v-2', email: 'shared@example.com', isEmailVerified: false }
    expect(await signIn('linkedin')).toMatchObject({
      identity: { provider: 'linkedin', subject: 'v-2', isEmailVerified: false },
    })
    simulator.person = { ...ADA, sub: 'v-1', email: 'shared@example.com', isEmailVerified: true }
    expect(await signIn('google')).toMatchObject({ identity: { subject: 'v-1', isEmailVerified: true } })
  })

  test('refuses a person who is banned, also one who was banned after the callback', async () => {
    simulator.person = { ...ADA, sub: 'b-1', email: 'banned@example.com' }
    simulator.fault = 'bans before'
    expect(await signIn()).toEqual({ kind: 'refused', reason: 'engine_refused', detail: 'user_banned' })
    simulator.person = { ...ADA, sub: 'b-2', email: 'banned-later@example.com' }
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
    const t = underTest('google')
    const input = { provider: 'google', state: 's', callbackUrl: t.callbackUrl, now: t.now() }
    const { redirectUrl, secret } = await engine.start(input)
    const implicit = new URL(redirectUrl)
    for (const name of ['code_challenge', 'code_challenge_method']) implicit.searchParams.delete(name)
    const obtain = async () => {
      const fragment = new URLSearchParams(new URL(await simulator.browse(implicit.href)).hash.slice(1))
      return { accessToken: fragment.get('access_token') ?? '', refreshToken: fragment.get('refresh_token') ?? '' }
    }
    const complete = (callback: { accessToken: string }) =>
      engine.complete({ ...input, now: t.now(), secret, callback, postedName: null })
    expect(await complete(await obtain())).toMatchObject({ kind: 'identity', identity: { subject: '4711' } })
    const forged = await obtain()
    expect(await complete({ accessToken: `${forged.accessToken.slice(0, -4)}AAAA` })).toMatchObject({ kind: 'refused' })
    const old = await obtain()
    clock.advance(601_000)
    expect(await complete(old)).toMatchObject({ reason: 'callback_incomplete', detail: 'TOKEN_NOT_FRESH' })
  })
})

describe('the simulator serves the official client', () => {
  function buildClient() {
    const kept = new Map<string, string>()
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
      removeItem: (key: string) => void kept.delete(key),
    }
    const options = { autoRefreshToken: false, detectSessionInUrl: false, flowType: 'pkce' as const }
    return new AuthClient({ url: simulator.url, storage, ...options })
  }

  async function obtainCode(client: ReturnType<typeof buildClient>): Promise<string> {
    const options = { redirectTo: 'https://app.example.com/back', skipBrowserRedirect: true }
    const { data } = await client.signInWithOAuth({ provider: 'google', options })
    const back = new URL(await simulator.browse(data.url ?? ''))
    expect(`${back.origin}${back.pathname}`).toBe('https://app.example.com/back')
    return back.searchParams.get('code') ?? ''
  }

  test('for sign-in with PKCE, the user with identities, refresh, and sign-out', async () => {
    // The client compares the expiry of tokens with the clock of the machine.
    clock.set(Date.now())
    const client = buildClient()
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
    const client = buildClient()
    const code = await obtainCode(client)
    await client.exchangeCodeForSession(code)
    await obtainCode(client)
    expect((await client.exchangeCodeForSession(code)).error?.code).toBe('flow_state_not_found')
    expect((await client.getUser('not.a.token')).error?.code).toBe('bad_jwt')
  })
})
