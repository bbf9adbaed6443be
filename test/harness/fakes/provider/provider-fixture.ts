import { enableProvider } from '../../../../src/identity/engine/embedded/built-in-providers.ts'
import type { EnabledProvider } from '../../../../src/identity/engine/embedded/provider/provider-declaration.ts'
import { parseAllowedTargets } from '../../../../src/outbound/guard/callback-url.ts'
import { buildGuardedFetch, type GuardedFetch } from '../../../../src/outbound/guarded-fetch.ts'
import { type FakeProvider, startFakeProvider } from './fake-provider.ts'
import { APPLE_KEY, PERSONALITIES, type PersonalityName } from './personalities.ts'

/** The fake providers of a test, and the `fetch` that finds them under their public names. */
export interface ProviderFixture extends AsyncDisposable {
  fakes: Record<PersonalityName, FakeProvider>
  /** Every fake as the configuration would enable it. */
  enabled: EnabledProvider[]
  fetch: GuardedFetch
}

/** The settings of every fake. */
function enable(name: PersonalityName): EnabledProvider {
  const { clientId, clientSecret } = PERSONALITIES[name]
  const result = enableProvider({
    name,
    clientId,
    clientSecret: name === 'apple' ? APPLE_KEY : clientSecret,
    issuer: name === 'company' ? 'https://login.company.example/realms/staff' : undefined,
    teamId: name === 'apple' ? 'TEAM000001' : undefined,
    keyId: name === 'apple' ? 'KEY0000001' : undefined,
    isEmailTrusted: undefined,
  })
  if ('fault' in result) throw new Error(`${name}: ${result.setting} ${result.fault}`)
  return result.provider
}

/**
 * Starts every fake provider on loopback. `fetch` sends requests to a public origin to its fake, and treats all other
 * addresses as production does. `timeoutMs` limits a request.
 */
export async function startProviderFixture(
  now: () => number,
  options: { timeoutMs?: number } = {},
): Promise<ProviderFixture> {
  const names = Object.keys(PERSONALITIES) as PersonalityName[]
  const started = await Promise.all(names.map((name) => startFakeProvider(PERSONALITIES[name], now)))
  const origins = new Map(started.flatMap((fake) => fake.personality.origins.map((origin) => [origin, fake.origin])))
  const noLookup = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
  const limit = options.timeoutMs === undefined ? {} : { totalTimeoutMs: options.timeoutMs }
  const local = buildGuardedFetch({
    ...limit,
    lookup: noLookup,
    rules: { allowHttp: true, allowedPrivateTargets: parseAllowedTargets('127.0.0.1') },
  })
  const strict = buildGuardedFetch({
    ...limit,
    lookup: noLookup,
    rules: { allowHttp: false, allowedPrivateTargets: [] },
  })
  return {
    fakes: Object.fromEntries(names.map((name, at) => [name, started[at]])) as ProviderFixture['fakes'],
    enabled: names.map(enable),
    fetch: (url, request) => {
      const { origin } = new URL(url)
      const fake = origins.get(origin)
      return fake === undefined ? strict(url, request) : local(`${fake}${url.slice(origin.length)}`, request)
    },
    [Symbol.asyncDispose]: async () => {
      for (const fake of started) await fake[Symbol.asyncDispose]()
    },
  }
}
