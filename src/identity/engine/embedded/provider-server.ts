import {
  allowInsecureRequests,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  clockSkew,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  None,
  type ServerMetadata,
} from 'openid-client'
import { buildCache } from '../../../base/cache.ts'
import type { Clock } from '../../../base/clock.ts'
import type { GuardedFetch } from '../../../outbound/guarded-fetch.ts'
import type { EnabledProvider } from './provider/provider-declaration.ts'

/** Lifetime of a discovered configuration, in milliseconds. Keys are fetched again when a token names an unknown one. */
const DISCOVERY_LIFETIME_MS = 3_600_000

/** Configurations that a process keeps: each is that of a provider or of a connection. */
const SERVERS_LIMIT = 500

/** Limit of one request to a provider, in seconds; the guarded fetch has a shorter one. */
const REQUEST_LIMIT_SECONDS = 12

/** A difference between two clocks that matters for the lifetime of a token, in seconds. */
const SKEW_TOLERANCE_SECONDS = 5

export interface ProviderServerDeps {
  fetch: GuardedFetch
  /** The clock that decides. */
  clock: Pick<Clock, 'now'>
  /** The clock of the machine, which `openid-client` reads by itself. */
  machineClock: Pick<Clock, 'now'>
  /** Whether an issuer may be `http://`: in development and tests. */
  isHttpAllowed: boolean
}

interface CachedServer {
  configuration: Promise<Configuration>
  expiresAtMs: number
  skewSeconds: number
}

/** Finds the configuration of a provider: its endpoints and keys, and the credentials of this service there. */
export type FindServer = (provider: EnabledProvider) => Promise<Configuration>

/** Builds the cache of providers' configurations (OpenID Connect Discovery 1.0 section 4.3). Failures are not kept. */
export function buildServerCache(deps: ProviderServerDeps): FindServer {
  const cached = buildCache<string, CachedServer>({ limit: SERVERS_LIMIT })
  return (provider) => {
    const nowMs = deps.clock.now()
    const skewSeconds = Math.round((nowMs - deps.machineClock.now()) / 1000)
    const known = cached.find(provider.name)
    if (known && known.expiresAtMs > nowMs && Math.abs(known.skewSeconds - skewSeconds) <= SKEW_TOLERANCE_SECONDS)
      return known.configuration
    const configuration = loadServer(deps, provider, skewSeconds)
    cached.put(provider.name, { configuration, expiresAtMs: nowMs + DISCOVERY_LIFETIME_MS, skewSeconds })
    configuration.catch(() => cached.drop(provider.name))
    return configuration
  }
}

async function loadServer(
  deps: ProviderServerDeps,
  provider: EnabledProvider,
  skewSeconds: number,
): Promise<Configuration> {
  const { declaration, client } = provider
  const { protocol } = declaration
  const fetch = provider.answer ? answerLocally(provider.answer) : deps.fetch
  const metadata = { [clockSkew]: skewSeconds }
  if (protocol.kind === 'oauth') {
    const server = protocol.buildMetadata(provider.base?.())
    const auth = chooseClientAuth(deps, provider, server)
    const configuration = new Configuration(server, client.id, metadata, auth)
    configuration[customFetch] = fetch as never
    configuration.timeout = REQUEST_LIMIT_SECONDS
    if (deps.isHttpAllowed) allowInsecureRequests(configuration)
    return configuration
  }
  const issuer = new URL(provider.base?.() ?? protocol.issuer)
  // The method is chosen when the token endpoint is called, because its document is not loaded yet.
  let chosen: ClientAuth | undefined
  const auth: ClientAuth = (server, ...rest) => {
    chosen ??= chooseClientAuth(deps, provider, server)
    return chosen(server, ...rest)
  }
  const found = await discovery(issuer, client.id, metadata, auth, {
    [customFetch]: fetch as never,
    timeout: REQUEST_LIMIT_SECONDS,
    // An ID token from the token endpoint is verified like any other: the channel is not its only proof.
    execute: [enableNonRepudiationChecks, ...(deps.isHttpAllowed ? [allowInsecureRequests] : [])],
  })
  // A document that can start no sign-in is refused here, so that it is not kept.
  buildAuthorizationUrl(found, {})
  return found
}

function chooseClientAuth(
  { clock }: ProviderServerDeps,
  { declaration, client }: EnabledProvider,
  server: ServerMetadata,
): ClientAuth {
  if (declaration.buildClientAuth) return declaration.buildClientAuth(client, clock)
  if (client.secret === undefined) return None()
  const methods = server.token_endpoint_auth_methods_supported
  // Without a list the default is Basic (OpenID Connect Discovery 1.0 section 3); plain OAuth providers all take the form.
  const takesForm = declaration.protocol.kind === 'oauth' || methods?.includes('client_secret_post')
  return takesForm ? ClientSecretPost(client.secret) : ClientSecretBasic(client.secret)
}

function answerLocally(answer: NonNullable<EnabledProvider['answer']>): GuardedFetch {
  return (url, { method, body }) =>
    answer(url, { method, body: body instanceof URLSearchParams ? body.toString() : '' })
}
