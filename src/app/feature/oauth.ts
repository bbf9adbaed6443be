import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AdapterPayload, Provider } from 'oidc-provider'
import { systemClock } from '../../base/clock.ts'
import type { RateLimiter } from '../../http/rate-limit/rate-limit.ts'
import { mountProtocol } from '../../http/server/mount-protocol.ts'
import { findVisitor } from '../../identity/pages/browser/browser-session.ts'
import { findClientMetadata } from '../../oauth/client/client-metadata.ts'
import { buildSecretUses } from '../../oauth/client/secret-list.ts'
import { findEntryPointProblem } from '../../oauth/provider/entry-points.ts'
import { serveProvider } from '../../oauth/provider/provider-mount.ts'
import { buildProviderPages } from '../../oauth/provider/provider-pages.ts'
import { buildProviderSource, PROVIDER_PATH, type ProviderSource } from '../../oauth/provider/provider-source.ts'
import { noticeSignOut } from '../../oauth/provider/sign-out-notice.ts'
import { buildGuardedFetch } from '../../outbound/guarded-fetch.ts'
import type { InvalidatedCache } from '../../postgres/connection/invalidated-cache.ts'
import type { AppOptions } from '../part/app-options.ts'
import type { FeatureParts } from './feature.ts'
import { decideCookieSafety } from './identity-engine.ts'
import { buildProviderRevocations, buildSilentGrants } from './oauth-revocations.ts'

/** Path of the metadata of an issuer with a path (RFC 8414 section 3.1). */
const METADATA_PATH = `/.well-known/oauth-authorization-server${PROVIDER_PATH}`

/** Mounts the OAuth provider of the embedded engine beside the routes of the API (docs/contract/oauth.md#entry-points). */
export async function mountOauthProvider(
  server: FastifyInstance,
  options: AppOptions,
  { parts, limiter, clients }: { parts: FeatureParts; limiter: RateLimiter; clients: InvalidatedCache<AdapterPayload> },
): Promise<void> {
  if (options.config.identityEngine !== 'embedded') return
  const { baseUrl } = parts.pages
  const source = buildSource(options, { parts, clients })
  followSignOuts(server, source, options)
  const mount = { source, baseUrl }
  await mountProtocol(server, {
    prefix: PROVIDER_PATH,
    limit: async (request, reply) => {
      if (!isStrict(request)) return limiter.limitVisit(request, reply)
      await limiter.limitAddress({ strictRateLimit: true }, request, reply)
    },
    findProblem: ({ method, url, headers }) =>
      findEntryPointProblem(
        {
          ...{ method, path: readOwnPath(url) },
          isPreflight: Boolean(headers['access-control-request-method']),
        },
        { isRegistrationOpen: options.config.oauthRegistration },
      ),
    handle: (request, response, { address }) => serveProvider(mount, request, { response, address }),
  })
  server.get(METADATA_PATH, { schema: { hide: true } }, async (request, reply) => {
    limiter.limitVisit(request, reply)
    reply.hijack()
    request.raw.url = `${PROVIDER_PATH}/.well-known/oauth-authorization-server`
    await serveProvider(mount, request.raw, { response: reply.raw, address: request.ip })
  })
}

/** The path of a request below the issuer. */
const readOwnPath = (url: string) => (url.split('?', 1)[0] ?? '').slice(PROVIDER_PATH.length)

/** Posts under the strict limit: a registration is a permanent row, a device's code can be guessed (RFC 8628, 5.1). */
const STRICT_PATHS: ReadonlySet<string> = new Set(['/register', '/device'].map((path) => PROVIDER_PATH + path))

function isStrict({ method, url }: FastifyRequest): boolean {
  // The provider ignores the case of a path and a slash at its end.
  const path = url.split('?', 1)[0]?.toLowerCase().replace(/\/$/, '') ?? ''
  return method === 'POST' && STRICT_PATHS.has(path)
}

/** A session cookie that an answer takes away. */
const ENDED_SESSION = /(^|[ ,])(__Host-)?signalbox_session=;/

/** Posts a logout token to each client of a browser that signed out at a page of the service, after the answer. */
function followSignOuts(server: FastifyInstance, source: ProviderSource, { logger }: AppOptions): void {
  server.addHook('onResponse', async (request, reply) => {
    const { cookie: cookieHeader } = request.headers
    // A browser that no client has signed in to costs nothing more.
    if (!cookieHeader?.includes('signalbox_oauth=')) return
    if (!ENDED_SESSION.test(String(reply.getHeader('set-cookie') ?? ''))) return
    const onFailure = (error: unknown, client?: string) =>
      logger.warn({ err: error, client }, 'back-channel sign-out not delivered: see docs/operations.md, oauth provider')
    try {
      await source.current()
      const provider = source.provider()
      if (provider) await noticeSignOut(provider, { cookieHeader, onFailure })
    } catch (error) {
      onFailure(error)
    }
  })
}

function buildSource(
  options: AppOptions,
  { parts, clients }: { parts: FeatureParts; clients: InvalidatedCache<AdapterPayload> },
): ProviderSource {
  const { config, database, logger, lookup, ca } = options
  const { pages, keyring, ids, random, flowCookies } = parts
  const { db } = database
  const fetch =
    options.fetchProvider ?? buildGuardedFetch({ lookup, rules: parts.callbackRules, ...(ca !== undefined && { ca }) })
  return buildProviderSource({
    ...{ db, keyring, ids, random, fetch },
    machineClock: systemClock,
    strictPerMinute: config.rateLimitStrictPerMinute,
    refresh: { repeatMs: config.oauthRefreshRepeatSeconds * 1000 },
    baseUrl: pages.baseUrl,
    cookieKeys: keyring.deriveKeys('oauth cookie').map((key) => key.toString('base64url')),
    cookies: decideCookieSafety(config),
    flowCookies,
    findUser: (header) => findUser(parts, header),
    findClient: (id) => clients.read(id, () => findClientMetadata(db, id)),
    findKeptClient: (id) => clients.find(id),
    noteSecretUse: buildSecretUses(db),
    pages: buildProviderPages(pages.brand),
    revocations: buildProviderRevocations(options, parts),
    keepSilentGrant: buildSilentGrants(options, parts),
    isRegistrationOpen: config.oauthRegistration,
    isPkceOptional: config.appEnv === 'certification',
    watch: (provider) => {
      watchProvider(provider, logger)
      options.onProviderBuilt?.(provider)
    },
  })
}

async function findUser({ pages, random }: FeatureParts, header: string | undefined) {
  const { user } = await findVisitor({ ...pages, random }, { cookie: header })
  return user && { userId: user.userId, sessionId: user.sessionId }
}

/** Logs the faults of the provider, without data of the request. */
function watchProvider(provider: Provider, logger: AppOptions['logger']): void {
  provider.on('server_error', (ctx, error) =>
    logger.error(
      { err: error, route: ctx.oidc?.route },
      'OAuth provider failed: see docs/operations.md, oauth provider',
    ),
  )
  provider.on('backchannel.error', (_ctx, error, client) =>
    logger.warn(
      { err: error, client: client.clientId },
      'back-channel sign-out not delivered: see docs/operations.md, oauth provider',
    ),
  )
}
