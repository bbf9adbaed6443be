import type { Provider } from 'oidc-provider'
import { buildApiAudience } from '../exchange/token-issuer.ts'
import { keepSigningKeys, loadSigningKeys } from '../signing-key/signing-key.ts'
import type { ProviderDeps } from './build-provider.ts'
import { loadWithoutRuntimeLine } from './overrides.ts'

/** Time for which a process uses the keys that it has read. Shorter than the publication of a key before its use. */
export const KEYS_CACHE_MS = 10_000

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
  /** Receives faults of the provider. */
  watch: (provider: Provider) => void
}

/** The issuer of a service, which is also where the provider is mounted. */
export const PROVIDER_PATH = '/api/v3/oauth'

/** Builds the source. The first request creates the first keys. */
export function buildProviderSource(deps: ProviderSourceDeps): ProviderSource {
  const { machineClock, keyring, db } = deps
  let current: { provider: Provider; serve: Served; keys: string; untilMs: number } | undefined
  let reading: Promise<Served> | undefined

  async function read(): Promise<Served> {
    const now = new Date(machineClock.now())
    await keepSigningKeys(keyring, db, now)
    const jwks = await loadSigningKeys(keyring, db, now)
    const keys = jwks.map(({ kid }) => kid).join(' ')
    const untilMs = now.getTime() + KEYS_CACHE_MS
    if (current?.keys === keys) current = { ...current, untilMs }
    else {
      const provider = await build(jwks)
      current = { provider, serve: provider.callback(), keys, untilMs }
    }
    return current.serve
  }

  async function build(jwks: ProviderDeps['jwks']): Promise<Provider> {
    // Loaded with the first request, because many services have no OAuth client.
    const { buildProvider } = await loadWithoutRuntimeLine(() => import('./build-provider.ts'))
    const baseUrl = deps.baseUrl()
    const issuer = `${baseUrl}${PROVIDER_PATH}`
    const provider = buildProvider({ ...deps, issuer, jwks, apiResource: buildApiAudience(baseUrl) })
    deps.watch(provider)
    return provider
  }

  return {
    provider: () => current?.provider,
    current: async () => {
      if (current && machineClock.now() < current.untilMs) return current.serve
      reading ??= read().finally(() => {
        reading = undefined
      })
      return reading
    },
  }
}
