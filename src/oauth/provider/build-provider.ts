import { type KoaContextWithOIDC, Provider } from 'oidc-provider'
import { describeRegistration } from '../client/client-metadata.ts'
import type { NoteSecretUse } from '../client/secret-list.ts'
import { buildConfiguration, type ConfigurationDeps } from './configuration.ts'
import { bindInteraction, type InteractionCookieDeps } from './interaction-cookie.ts'
import { applyOverrides } from './overrides.ts'
import { finishRequest } from './request-end.ts'
import type { FindUser } from './state/session-bridge.ts'
import { followRevocations } from './token-family/revocations.ts'

/** Dependencies of the provider. */
export interface ProviderDeps extends ConfigurationDeps, InteractionCookieDeps {
  noteSecretUse: NoteSecretUse
  issuer: string
  findUser: FindUser
}

/** Builds the provider for one set of signing keys. */
export function buildProvider(deps: ProviderDeps): Provider {
  const provider = new Provider(deps.issuer, buildConfiguration(deps))
  // The forwarded headers are set by the mount, from BASE_URL and the address that the service found.
  provider.proxy = true
  applyOverrides(provider, { ...deps, findContext: () => Provider.ctx })
  followRevocations(provider, deps.revocations)
  provider.on('registration_create.success', (ctx) => {
    ctx.body = describeRegistration(ctx.body as Record<string, unknown>)
  })
  provider.use(async (ctx, next) => {
    bindInteraction(deps, ctx as KoaContextWithOIDC)
    await next()
    await finishRequest(deps, ctx as KoaContextWithOIDC)
  })
  return provider
}
