import { systemClock } from '../clock.ts'
import { buildEmbeddedEngine } from '../engine/embedded/embedded-engine.ts'
import type { EnabledProvider } from '../engine/embedded/provider-declaration.ts'
import { type CallbackRules, parseAllowedTargets } from '../outbound/callback-url.ts'
import { buildGuardedFetch } from '../outbound/guarded-fetch.ts'
import { buildBrowserBinding } from '../social-login/browser-binding.ts'
import type { AppOptions } from './app.ts'
import type { FeatureParts } from './features.ts'

/** Builds the parts of social login from the configuration: the engine, the browser binding, the rules for redirects. */
export function buildIdentityParts(options: AppOptions): Pick<FeatureParts, 'engine' | 'binding' | 'redirectRules'> {
  const { config, random, clock } = options
  const isDevelopment = config.appEnv === 'development'
  const isHttpAllowed = isDevelopment || config.appEnv === 'test'
  const rules = buildProviderRules(config.socialProviders, isHttpAllowed)
  const fetch =
    options.fetchProvider ??
    buildGuardedFetch({ lookup: options.lookup, rules, ...(options.ca !== undefined && { ca: options.ca }) })
  return {
    engine: buildEmbeddedEngine({
      providers: config.socialProviders,
      fetch,
      random,
      clock,
      machineClock: systemClock,
      isHttpAllowed,
    }),
    binding: buildBrowserBinding(random, !isHttpAllowed),
    redirectRules: { allowList: config.redirectAllowList, allowLoopback: isDevelopment },
  }
}

/**
 * What requests to providers may reach: public hosts, and the hosts of the issuers in the configuration, which may be inside
 * the operator's network. Endpoints on other hosts, which a discovery document names, must be public.
 */
function buildProviderRules(providers: readonly EnabledProvider[], allowHttp: boolean): CallbackRules {
  const targets = providers.flatMap(({ base }) => {
    const issuer = base && URL.parse(base())
    return issuer ? [`${issuer.hostname}:${issuer.port || (issuer.protocol === 'https:' ? '443' : '80')}`] : []
  })
  return { allowHttp, allowedPrivateTargets: parseAllowedTargets(targets.join(',')) }
}
