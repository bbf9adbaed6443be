import type { Provider } from 'oidc-provider'
import { keepSigningKeys, loadSigningKeys } from '../signing-key/signing-key.ts'
import type { ProviderDeps } from './build-provider.ts'
import { loadWithoutRuntimeLine } from './overrides.ts'

/** How long a process signs and publishes the keys that it has read. Shorter than any key is published before its use. */
export const KEYS_HELD_MS = 10_000

/** Builds the provider when it is first needed, and again when the signing keys change. */
export interface ProviderSource {
  /** Handler of a request. */
  current(): Promise<Served>
  /** The provider itself; undefined when no request has needed it in this process. */
  provider(): Provider | undefined
}

type Served = ReturnType<Provider['callback']>

/** Constant dependencies of a provider; the issuer is known once the service listens. */
export interface ProviderSourceDeps extends Omit<ProviderDeps, 'issuer' | 'jwks' | 'apiResource'> {
  baseUrl: () => string
  /** Hears of faults of the provider. */
  watch: (provider: Provider) => void
}

/** The issuer of a service, which is also where the provider is mounted. */
export const PROVIDER_PATH = '/api/v3/oauth'

/** The identifier of the API as a resource (RFC 8707): the audience of its access tokens. */
export function findApiResource(baseUrl: string): string {
  return `${baseUrl}/api/v3`
}

/** Builds the source. The first request creates the first keys. */
export function buildProviderSource(deps: ProviderSourceDeps): ProviderSource {
  const { machineClock, keyring, db } = deps
  let held: { provider: Provider; serve: Served; keys: string; untilMs: number } | undefined
  let reading: Promise<Served> | undefined

  async function read(): Promise<Served> {
    const now = new Date(machineClock.now())
    await keepSigningKeys(keyring, db, now)
    const jwks = await loadSigningKeys(keyring, db, now)
    const keys = jwks.map(({ kid }) => kid).join(' ')
    const untilMs = now.getTime() + KEYS_HELD_MS
    if (held?.keys === keys) held = { ...held, untilMs }
    else {
      const provider = await build(jwks)
      held = { provider, serve: provider.callback(), keys, untilMs }
    }
    return held.serve
  }

  async function build(jwks: ProviderDeps['jwks']): Promise<Provider> {
    // Loaded with the first request: a service that no OAuth client uses does not pay for it.
    const { buildProvider } = await loadWithoutRuntimeLine(() => import('./build-provider.ts'))
    const baseUrl = deps.baseUrl()
    const issuer = `${baseUrl}${PROVIDER_PATH}`
    const provider = buildProvider({ ...deps, issuer, jwks, apiResource: findApiResource(baseUrl) })
    deps.watch(provider)
    return provider
  }

  return {
    provider: () => held?.provider,
    current: async () => {
      if (held && machineClock.now() < held.untilMs) return held.serve
      reading ??= read().finally(() => {
        reading = undefined
      })
      return reading
    },
  }
}
