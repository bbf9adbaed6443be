import type { IncomingMessage } from 'node:http'
import type { AdapterPayload, KoaContextWithOIDC, Provider } from 'oidc-provider'
import { findPresentedSecret } from '../client/client-secret.ts'
import type { NoteSecretUse } from '../client/secret-list.ts'
import { readJwtTokenId } from '../grant/state-id.ts'
import { type FindUser, type SessionModel, visitSession } from './state/session-bridge.ts'
import type { ReadDeps } from './state/state-reader.ts'

/** A part of the library that the service replaces, because no option can. */
interface Override {
  /** The member of the provider, or its default behaviour. */
  replaced: string
  /** The reviewed version of the library: a test fails with any other, until its part is reviewed again. */
  version: string
  reason: string
  /** Replaces the member. Undefined where the caller of the library does it, by a function of this file. */
  apply?: (models: Models, deps: OverrideDeps) => void
}

/** Dependencies of the replaced members. */
export interface OverrideDeps extends ReadDeps {
  apiResource: string
  findUser: FindUser
  /** The payload of a client that the process keeps and may use now (`StateDeps.findKeptClient`). */
  findKeptClient: (id: string) => AdapterPayload | undefined
  noteSecretUse: NoteSecretUse
  /** The request that the library serves now. */
  findContext: () => KoaContextWithOIDC | undefined
}

/** The models of the library, as far as this file reads them. */
interface Models {
  Client: {
    find(id: unknown): Promise<object | undefined>
    prototype: {
      compareClientSecret(this: { clientId: string; clientSecret?: string }, given: string): Promise<boolean>
    }
  }
  Session: SessionModel
  AccessToken: {
    IN_PAYLOAD: readonly string[]
    find(value: string, options?: object): Promise<{ aud?: string | string[] } | undefined>
    prototype: {
      getValueAndPayload(this: StoredToken): Promise<{ value: string; payload?: Record<string, unknown> }>
    }
  }
}

interface StoredToken {
  format?: string
  [member: string]: unknown
}

/** All replaced behaviour of the library. */
export const OVERRIDES: readonly Override[] = [
  {
    replaced: 'Client.find',
    version: '9.13.3',
    reason: 'the library reads the payload of a client at each use, and hashes it as JSON to find what it has built',
    apply: keepBuiltClients,
  },
  {
    replaced: 'Client.prototype.compareClientSecret',
    version: '9.13.3',
    reason: 'a client has several secrets while one is replaced, kept as hashes',
    apply: compareSecrets,
  },
  {
    replaced: 'Session.get',
    version: '9.13.3',
    reason: 'who is signed in is decided by the session of the browser, not by that of the provider',
    apply: ({ Session }, deps) => {
      const getOwn = Session.get.bind(Session)
      Session.get = (ctx) => visitSession(Session, getOwn, deps, ctx)
    },
  },
  {
    replaced: 'Session.IN_PAYLOAD',
    version: '9.13.3',
    reason: 'a session of the provider keeps which session of the browser it follows',
    apply: ({ Session }) => {
      const members = [...Session.IN_PAYLOAD, 'browserSession']
      Object.defineProperty(Session, 'IN_PAYLOAD', { get: () => members })
    },
  },
  {
    replaced: 'Session.prototype.persist',
    version: '9.13.3',
    reason:
      'a form that comes without the session of its page touches a new one, which nobody needs: it is not written',
    apply: ({ Session: { prototype } }) => {
      const { persist } = prototype
      prototype.persist = async function () {
        if (typeof this.exp === 'number') await persist.call(this)
      }
    },
  },
  {
    replaced: 'AccessToken.find',
    version: '9.13.3',
    reason: 'the audience keeps a token for another resource from userinfo; the tokens of the API may read it',
    apply: ({ AccessToken }, { apiResource, findContext }) => {
      const findOwn = AccessToken.find.bind(AccessToken)
      AccessToken.find = async (value, options) => {
        const found = await findOwn(value, options)
        if (found?.aud === apiResource && findContext()?.oidc?.route === 'userinfo') delete found.aud
        return found
      }
    },
  },
  {
    replaced: 'AccessToken.prototype.getValueAndPayload',
    version: '9.13.3',
    reason: 'the library keeps nothing of an access token that is a JWT, so none could be revoked',
    apply: keepApiTokens,
  },
  {
    replaced: 'the line about releases of Node that are not LTS',
    version: '9.13.3',
    reason: 'the release is pinned, and the tests of the provider run on it: `loadWithoutRuntimeLine`',
  },
  {
    replaced: 'the body of a request',
    version: '9.13.3',
    reason: 'the mount reads it, to bound it and to change tokens in it: `handOver`',
  },
  {
    replaced: 'the cookies of an interaction',
    version: '9.13.3',
    reason:
      'of two authorizations in a browser the second replaces the cookie of the first, another host of the domain can set them, and those that never end pile up: `bindInteraction` (interaction-cookie.ts)',
  },
  {
    replaced: 'the page that sends a form at once',
    version: '9.13.3',
    reason: 'it has an inline script and no policy: `replaceSubmitPage` (submit-page.ts)',
  },
]

/** Replaces the members of the models of a provider. */
export function applyOverrides(provider: Provider, deps: OverrideDeps): void {
  for (const { apply } of OVERRIDES) apply?.(provider as unknown as Models, deps)
}

/**
 * Returns the client built from a cached payload. A payload is cached only while changes are reported
 * (`InvalidatedCache`), and a changed client has another one: so the built client is dropped with it.
 */
function keepBuiltClients({ Client }: Models, { findKeptClient }: OverrideDeps): void {
  const findOwn = Client.find.bind(Client)
  const built = new WeakMap<AdapterPayload, object>()
  Client.find = async (id) => {
    const kept = typeof id === 'string' ? findKeptClient(id) : undefined
    const cached = kept && built.get(kept)
    if (cached) return cached
    const client = await findOwn(id)
    // Built from this payload, or from a later read.
    if (client && kept && kept === findKeptClient(String(id))) built.set(kept, client)
    return client
  }
}

function compareSecrets({ Client }: Models, { machineClock, noteSecretUse }: OverrideDeps): void {
  Client.prototype.compareClientSecret = async function (given) {
    const nowMs = machineClock.now()
    const hash = findPresentedSecret(this.clientSecret ?? '', given, nowMs)
    if (hash) await noteSecretUse({ client: this.clientId, hash, nowMs })
    return hash !== undefined
  }
}

/**
 * Stores the access tokens for the API, which are JWTs, in the state of the provider too, under their `jti` and with a
 * hash of the whole token. So revocation, introspection and userinfo accept them, and a revoked token is detected at
 * once (docs/contract/oauth.md#access-token).
 */
function keepApiTokens({ AccessToken }: Models, { findContext }: OverrideDeps): void {
  // A getter, which builds the list at each use.
  const members = AccessToken.IN_PAYLOAD
  const buildOwn = AccessToken.prototype.getValueAndPayload
  AccessToken.prototype.getValueAndPayload = async function () {
    const built = await buildOwn.call(this)
    const token = this.format === 'jwt' ? readJwtTokenId(built.value) : undefined
    if (!token) return built
    const payload: Record<string, unknown> = {}
    for (const name of members) if (this[name] !== undefined) payload[name] = this[name]
    const claims = findAskedClaims(findContext())
    if (claims) payload.claims = claims
    const { iat, exp } = token.claims
    return { ...built, payload: Object.assign(payload, { iat, exp, format: 'opaque', tokenHash: token.tokenHash }) }
  }
}

/**
 * Claims requested for userinfo by the parameter `claims`, as the code or refresh token of this request keeps it. The
 * library leaves it out of tokens for an API, which userinfo refuses there.
 */
function findAskedClaims(ctx: KoaContextWithOIDC | undefined): { userinfo: object } | undefined {
  const { AuthorizationCode: code, DeviceCode: device, RefreshToken: refresh } = ctx?.oidc.entities ?? {}
  const source = (code ?? device ?? refresh) as { claims?: { userinfo?: object } } | undefined
  const userinfo = source?.claims?.userinfo
  return userinfo && { userinfo }
}

/** Loads the library without its warning about the release of Node. Other lines are written. */
export async function loadWithoutRuntimeLine<Loaded>(load: () => Promise<Loaded>): Promise<Loaded> {
  const { warn } = console
  console.warn = (...texts: unknown[]) => {
    if (!String(texts[0]).includes('oidc-provider WARNING: Unsupported runtime')) warn.apply(console, texts)
  }
  try {
    return await load()
  } finally {
    console.warn = warn
  }
}

/** Lets the library read a consumed body: it iterates over the chunks of a readable request. */
export function handOver(request: IncomingMessage, body: Buffer): void {
  request.headers['content-length'] = String(body.length)
  if (request.headers['transfer-encoding'] !== undefined) delete request.headers['transfer-encoding']
  Object.defineProperty(request, 'readable', { value: true })
  Object.assign(request, { iterator: () => [body] })
}
