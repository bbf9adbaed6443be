import { systemClock } from '../../base/clock.ts'
import type { IdMaker } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import { buildConnectionEngines } from '../../identity/connection/connection-engines.ts'
import { buildOidcConnections } from '../../identity/connection/oidc/oidc-connection.ts'
import { buildSamlConnections } from '../../identity/connection/saml/saml-engine.ts'
import { combineEngines } from '../../identity/engine/combined-engine.ts'
import { buildDevProvider } from '../../identity/engine/embedded/dev-provider.ts'
import { buildEmbeddedEngine } from '../../identity/engine/embedded/embedded-engine.ts'
import type { EnabledProvider } from '../../identity/engine/embedded/provider/provider-declaration.ts'
import type { Engine } from '../../identity/engine/engine.ts'
import { checkServer } from '../../identity/engine/supabase/supabase-check.ts'
import { buildSupabaseClient, type SupabaseClient } from '../../identity/engine/supabase/supabase-client.ts'
import { buildSupabaseEngine } from '../../identity/engine/supabase/supabase-engine.ts'
import { buildFlowCookies } from '../../identity/pages/browser/flow-cookie.ts'
import { parseRedirectAllowList } from '../../identity/sign-in/outcome/redirect-allow-list.ts'
import type { RedirectRules } from '../../identity/sign-in/outcome/redirect-url.ts'
import { buildEngineConsent } from '../../oauth/engine-consent/engine-consent.ts'
import { type CallbackRules, parseAllowedTargets } from '../../outbound/guard/callback-url.ts'
import { buildGuardedFetch, type GuardedFetch } from '../../outbound/guarded-fetch.ts'
import type { Config } from '../config/config.ts'
import type { AppOptions } from '../part/app-options.ts'
import type { FeatureParts } from './feature.ts'
import { buildTokenIssuers } from './token-issuers.ts'

/** Return URLs of a sign-in: those of the configuration, the service itself, and in development loopback. */
export function buildRedirectRules({ appEnv, redirectAllowList }: Config, baseUrl: string): RedirectRules {
  return {
    allowList: [...redirectAllowList, ...parseRedirectAllowList(baseUrl)],
    allowLoopback: appEnv === 'development',
  }
}

/** `isSecure`: cookies go by HTTPS only. `isHostBound`: no other host can set them (`__Host-`). */
export function decideCookieSafety({ appEnv, baseUrl }: Config): { isSecure: boolean; isHostBound: boolean } {
  const isSecure = appEnv !== 'development' || baseUrl?.startsWith('https:') === true
  return { isSecure, isHostBound: appEnv === 'production' }
}

interface IdentityInput {
  ids: IdMaker
  keyring: Keyring
  baseUrl: () => string
  callbackRules: CallbackRules
}

/** Builds the parts of social login from the configuration: the engine and the cookies of flows. */
export function buildIdentityParts(
  options: AppOptions,
  { ids, keyring, baseUrl, callbackRules }: IdentityInput,
): Pick<
  FeatureParts,
  'engine' | 'connections' | 'flowCookies' | 'devProvider' | 'tokenIssuers' | 'engineConsent' | 'checkEngine'
> {
  const { config, random, clock, logger } = options
  const isDevelopment = config.appEnv === 'development'
  const isHttpAllowed = isDevelopment || config.appEnv === 'test'
  const rules = buildProviderRules(config, isHttpAllowed)
  const fetch =
    options.fetchProvider ??
    buildGuardedFetch({ lookup: options.lookup, rules, ...(options.ca !== undefined && { ca: options.ca }) })
  const devProvider = isDevelopment ? buildDevProvider({ keyring, random, clock, baseUrl }) : undefined
  const embed = (providers: readonly EnabledProvider[]) =>
    buildEmbeddedEngine({ providers, fetch, random, clock, machineClock: systemClock, isHttpAllowed })
  const managed = config.identityEngine === 'supabase' ? buildManagedClient(config, fetch) : undefined
  const engine = managed ? buildManagedEngine(options, managed) : embed(config.socialProviders)
  return {
    ...(devProvider && { devProvider }),
    ...(managed && {
      engineConsent: buildEngineConsent({ client: managed, keyring, ids }),
      checkEngine: () =>
        checkServer({ client: managed, providers: config.socialProviders.map(({ name }) => name), logger }),
    }),
    connections: buildConnections(options, { keyring, callbackRules, baseUrl }),
    engine: devProvider ? combineEngines([engine, embed([devProvider.enabled])]) : engine,
    tokenIssuers: buildTokenIssuers(options, { baseUrl, keyring, managed }),
    flowCookies: buildFlowCookies(keyring, decideCookieSafety(config)),
  }
}

/** The engines of connections, whose providers accounts choose: requests to them are guarded like callbacks. */
function buildConnections(
  { lookup, ca, random, clock, fetchProvider }: AppOptions,
  { keyring, callbackRules: rules, baseUrl }: Omit<IdentityInput, 'ids'>,
) {
  const fetch = fetchProvider ?? buildGuardedFetch({ lookup, rules, ...(ca !== undefined && { ca }) })
  const isHttpAllowed = rules.allowHttp
  const deps = { keyring, random, clock, machineClock: systemClock, fetch, isHttpAllowed }
  return buildConnectionEngines({ oidc: buildOidcConnections(deps), saml: buildSamlConnections({ baseUrl }) })
}

function buildManagedClient({ supabaseUrl: url = '', supabaseAnonKey: anonKey }: Config, fetch: GuardedFetch) {
  return buildSupabaseClient({ url, anonKey, fetch })
}

/** The engine that speaks to Supabase Auth, which keeps the credentials of the providers. */
function buildManagedEngine({ config, random }: AppOptions, client: SupabaseClient): Engine {
  const { socialProviders } = config
  return buildSupabaseEngine({
    client,
    providers: socialProviders.map(({ name, declaration: { label }, isEmailTrusted }) => ({
      name,
      label,
      isEmailTrusted,
    })),
    random,
  })
}

/** Hosts that requests to providers may reach: public ones, and those of the settings, which may be internal. */
function buildProviderRules({ socialProviders, supabaseUrl }: Config, allowHttp: boolean): CallbackRules {
  const given = [...socialProviders.map(({ base }) => base?.()), supabaseUrl]
  const targets = given.flatMap((address) => {
    const url = address === undefined ? null : URL.parse(address)
    return url ? [`${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`] : []
  })
  return { allowHttp, allowedPrivateTargets: parseAllowedTargets(targets.join(',')) }
}
