import { beforeEach, describe, expect, test } from 'vitest'
import { describeCodeInjection, describeEngine, type EngineUnderTest } from '../../../../test/conformance/engine.ts'
import type { Fault } from '../../../../test/harness/fakes/provider/fake-provider.ts'
import { PERSONALITIES, type PersonalityName, TENANT } from '../../../../test/harness/fakes/provider/personalities.ts'
import { startProviderFixture } from '../../../../test/harness/fakes/provider/provider-fixture.ts'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { systemClock } from '../../../base/clock.ts'
import { systemRandom } from '../../../base/random.ts'
import { type Engine, EngineUnavailable, type ProviderIdentity } from '../engine.ts'
import { buildEmbeddedEngine } from './embedded-engine.ts'

const NAMES = Object.keys(PERSONALITIES) as PersonalityName[]
const ADA = { sub: '4711', email: 'ada@example.com', isEmailVerified: true, name: 'Ada Lovelace' }

let engine: Engine

const buildEngine = () =>
  buildEmbeddedEngine({
    providers: fixture.enabled,
    fetch: fixture.fetch,
    random: systemRandom,
    clock,
    machineClock: systemClock,
    isHttpAllowed: false,
  })

const clock = buildManualClock()
const fixture = await openForFile(startProviderFixture(() => clock.now(), { timeoutMs: 2_000 }))
beforeEach(() => {
  engine = buildEngine()
  for (const fake of Object.values(fixture.fakes)) {
    fake.fault = undefined
    fake.user = { ...ADA }
  }
})

const callbackOf = (provider: string) => `https://service.test/api/v3/auth/login/oauth/${provider}/callback`

function underTest(provider: PersonalityName): EngineUnderTest {
  const fake = fixture.fakes[provider]
  return {
    engine,
    provider,
    callbackUrl: callbackOf(provider),
    now: () => new Date(clock.now()),
    seat: (user) => {
      fake.user = user
    },
    browse: async (redirectUrl) => {
      const step = await fake.authorize(redirectUrl)
      const query = new URL(step.url).searchParams
      const read = (name: string) => step.form?.[name] ?? query.get(name) ?? undefined
      const user = read('user')
      const posted = user === undefined ? undefined : (JSON.parse(user).name as Record<string, string>)
      return {
        state: read('state'),
        callback: { code: read('code'), iss: read('iss'), error: read('error') },
        postedName: posted ? `${posted.firstName} ${posted.lastName}` : null,
      }
    },
    missingAddress: 'identity',
    breakDown: () => {
      fake.fault = 'token endpoint down'
    },
    expected: ({ sub, name = null }) => ({ subject: sub, name }),
  }
}

/** One whole sign-in. */
async function signIn(provider: PersonalityName, options: { fault?: Fault; state?: string } = {}) {
  const t = underTest(provider)
  const state = options.state ?? 'state-1'
  const input = { provider, state, callbackUrl: t.callbackUrl, now: t.now() }
  const flow = await engine.start(input)
  fixture.fakes[provider].fault = options.fault
  const { callback, postedName } = await t.browse(flow.redirectUrl)
  return engine.complete({ ...input, secret: flow.secret, callback, postedName })
}

async function identityOf(provider: PersonalityName): Promise<ProviderIdentity> {
  const result = await signIn(provider)
  if (result.kind !== 'identity') throw new Error(`refused: ${result.reason} ${result.detail}`)
  return result.identity
}

describe.each(NAMES)('the embedded engine with %s', (name) => {
  describeEngine(name, () => underTest(name))
  if (name !== 'linkedin') describeCodeInjection(name, () => underTest(name))
})

describe('what is particular to a provider', () => {
  test('Microsoft: an address without xms_edov is never verified', async () => {
    fixture.fakes.microsoft.user = { ...ADA, email: 'ceo@victim.example', isEmailVerified: false }
    expect(await identityOf('microsoft')).toMatchObject({ email: 'ceo@victim.example', isEmailVerified: false })
  })

  test('Microsoft: the issuer of a token must be that of its tenant', async () => {
    fixture.fakes.microsoft.user = { ...ADA, tid: TENANT }
    expect(await signIn('microsoft')).toMatchObject({ kind: 'identity' })
    expect(await signIn('microsoft', { fault: 'wrong issuer' })).toMatchObject({ reason: 'id_token_invalid' })
  })

  test('Microsoft: a tenant that is no UUID names nobody', async () => {
    fixture.fakes.microsoft.user = { ...ADA, tid: 'common' }
    expect(await signIn('microsoft')).toMatchObject({ kind: 'refused', reason: 'profile_invalid' })
  })

  test('Apple: the answer is posted, and the name is in the first one only', async () => {
    const t = underTest('apple')
    const start = () => engine.start({ provider: 'apple', state: 's', callbackUrl: t.callbackUrl, now: t.now() })
    fixture.fakes.apple.user = { ...ADA, sub: 'apple-name-once' }
    const first = await start()
    expect(new URL(first.redirectUrl).searchParams.get('response_mode')).toBe('form_post')
    expect((await t.browse(first.redirectUrl)).postedName).toBe('Ada Lovelace')
    expect((await t.browse((await start()).redirectUrl)).postedName).toBeNull()
  })

  test('every request of the service to a provider goes over the connection of the one before', async () => {
    for (const provider of ['google', 'company', 'github'] as const) {
      const fake = fixture.fakes[provider]
      fake.user = { ...ADA }
      fake.calls.length = 0
      fake.connections.clear()
      for (let times = 0; times < 2; times += 1) expect(await signIn(provider)).toMatchObject({ kind: 'identity' })
      expect(fake.calls.length).toBeGreaterThan(3)
      expect([provider, fake.connections.size]).toEqual([provider, 1])
    }
  })

  test('GitHub: the public address of the profile is never used', async () => {
    fixture.fakes.github.user = { ...ADA, email: null }
    expect((await identityOf('github')).email).toBeNull()
    fixture.fakes.github.user = { ...ADA, isEmailVerified: false }
    expect(await identityOf('github')).toMatchObject({ email: 'ada@example.com', isEmailVerified: false })
  })

  test('GitLab and the company: the address comes from the userinfo endpoint of the same subject', async () => {
    for (const name of ['gitlab', 'company'] as const) {
      expect((await identityOf(name)).email).toBe('ada@example.com')
      expect(await signIn(name, { fault: 'userinfo of another' })).toMatchObject({ reason: 'profile_invalid' })
    }
  })

  test('LinkedIn: neither verifier nor nonce is sent', async () => {
    const flow = await engine.start({
      provider: 'linkedin',
      state: 's',
      callbackUrl: callbackOf('linkedin'),
      now: new Date(clock.now()),
    })
    const query = new URL(flow.redirectUrl).searchParams
    expect([query.get('code_challenge'), query.get('nonce'), flow.secret]).toEqual([null, null, {}])
  })

  test('every other provider is asked with PKCE S256', async () => {
    for (const name of NAMES.filter((name) => name !== 'linkedin')) {
      const now = new Date(clock.now())
      const flow = await engine.start({ provider: name, state: 's', callbackUrl: callbackOf(name), now })
      const query = new URL(flow.redirectUrl).searchParams
      expect([query.get('code_challenge_method'), query.get('code_challenge')?.length], name).toEqual(['S256', 43])
    }
  })

  test('Discord: the picture is addressed by its hash', async () => {
    expect((await identityOf('discord')).avatarUrl).toBe('https://cdn.discordapp.com/avatars/4711/a1b2c3.png')
  })

  test('a provider whose addresses are not trusted verifies none', async () => {
    fixture.enabled = fixture.enabled.map((item) =>
      item.name === 'google' ? { ...item, isEmailTrusted: false } : item,
    )
    engine = buildEngine()
    expect(await identityOf('google')).toMatchObject({ email: 'ada@example.com', isEmailVerified: false })
    fixture.enabled = fixture.enabled.map((item) => (item.name === 'google' ? { ...item, isEmailTrusted: true } : item))
  })

  test('names lose control characters, pictures must be https, and addresses must be addresses', async () => {
    fixture.fakes.google.user = {
      ...ADA,
      name: `Ada\u0000\n<b>${'x'.repeat(300)}`,
      picture: 'javascript:alert(1)',
      email: 'not an address',
    }
    const identity = await identityOf('google')
    expect(identity).toMatchObject({ email: null, isEmailVerified: false, avatarUrl: null })
    expect(identity.name).toMatch(/^Ada <b>x{193}$/)
  })
})

test('a plain OAuth provider at an http address takes part only where such addresses are allowed', async () => {
  const providers = fixture.enabled.map((item) => ({ ...item, base: () => 'http://github.internal' }))
  const rest = { providers, fetch: fixture.fetch, random: systemRandom, clock, machineClock: systemClock }
  const start = (isHttpAllowed: boolean) =>
    buildEmbeddedEngine({ ...rest, isHttpAllowed }).start({
      ...{ provider: 'github', state: 's', callbackUrl: callbackOf('github'), now: new Date(clock.now()) },
    })
  expect((await start(true)).redirectUrl).toMatch(/^http:[/][/]github[.]internal[/]login[/]oauth[/]authorize[?]/)
  await expect(start(false)).rejects.toThrow(EngineUnavailable)
})

describe('attacks on the answer', () => {
  test.each([
    ['wrong nonce', 'id_token_invalid'],
    ['wrong issuer', 'id_token_invalid'],
    ['wrong audience', 'id_token_invalid'],
    ['expired token', 'id_token_invalid'],
    ['unknown key', 'id_token_invalid'],
    ['unsigned token', 'id_token_invalid'],
    ['symmetric token', 'id_token_invalid'],
    ['no id token', 'id_token_invalid'],
    ['no subject', 'id_token_invalid'],
    ['code refused', 'code_refused'],
    ['token endpoint down', 'provider_fault'],
    ['token endpoint redirects', 'provider_fault'],
    ['token endpoint answers text', 'provider_fault'],
    ['token endpoint answers megabytes', 'provider_fault'],
    ['token endpoint silent', 'provider_fault'],
  ] as const)('an answer with %s is refused as %s', async (fault, reason) => {
    expect(await signIn('google', { fault })).toMatchObject({ kind: 'refused', reason })
  })

  test('an answer in the name of another issuer is refused before its code is sent (mix-up)', async () => {
    const { calls } = fixture.fakes.company
    expect(await signIn('company', { fault: 'foreign iss' })).toMatchObject({
      reason: 'issuer_mismatch',
      detail: 'ISS_DIFFERS',
    })
    expect(calls.at(-1)).toBe('/authorize')
    expect(await signIn('company', { fault: 'no iss' })).toMatchObject({
      reason: 'issuer_mismatch',
      detail: 'ISS_MISSING',
    })
    expect(calls.at(-1)).toBe('/authorize')
  })

  test('an error in the name of another issuer is a mismatch and not a denial', async () => {
    const now = new Date(clock.now())
    const input = { provider: 'company', state: 's', callbackUrl: callbackOf('company'), now }
    const { secret } = await engine.start(input)
    const callback = { error: 'access_denied', iss: 'https://attacker.example' }
    expect(await engine.complete({ ...input, secret, callback, postedName: null })).toMatchObject({
      reason: 'issuer_mismatch',
    })
  })

  test('the provider API that is down is a fault', async () => {
    expect(await signIn('github', { fault: 'api down' })).toMatchObject({ kind: 'refused' })
  })

  test('a refusal carries neither code nor token nor address', async () => {
    const result = await signIn('google', { fault: 'wrong nonce' })
    expect(JSON.stringify(result)).not.toMatch(/eyJ|ada@example/)
  })
})

describe('discovery', () => {
  const start = () =>
    engine.start({ provider: 'google', state: 's', callbackUrl: callbackOf('google'), now: new Date(clock.now()) })

  test('a document of another issuer makes the provider unavailable', async () => {
    fixture.fakes.google.fault = 'foreign discovery issuer'
    await expect(start()).rejects.toThrow(EngineUnavailable)
  })

  test('a document is fetched once an hour', async () => {
    const count = () => fixture.fakes.google.calls.filter((path) => path.includes('well-known')).length
    const before = count()
    await start()
    await start()
    expect(count() - before).toBe(1)
    clock.advance(3_600_001)
    await start()
    expect(count() - before).toBe(2)
  })

  test('a failed discovery is tried again', async () => {
    fixture.fakes.google.fault = 'foreign discovery issuer'
    await expect(start()).rejects.toThrow(EngineUnavailable)
    fixture.fakes.google.fault = undefined
    expect((await start()).redirectUrl).toContain('https://accounts.google.com/authorize')
  })

  test.each(['private token endpoint', 'plain token endpoint'] as const)(
    'a document that names a %s leads to no request there',
    async (fault) => {
      fixture.fakes.google.fault = fault
      const now = new Date(clock.now())
      const input = { provider: 'google', state: 's', callbackUrl: callbackOf('google'), now }
      const { secret } = await engine.start(input)
      expect(await engine.complete({ ...input, secret, callback: { code: 'c' }, postedName: null })).toMatchObject({
        kind: 'refused',
      })
    },
  )
})
