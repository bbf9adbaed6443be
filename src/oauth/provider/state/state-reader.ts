import type { KoaContextWithOIDC } from 'oidc-provider'
import type { Clock } from '../../../base/clock.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { findActiveUser, type UserClaims } from '../../claims/user-claims.store.ts'
import { findGrantOf, type GrantRecord } from '../../grant/grant.store.ts'
import { hashStateId } from '../../grant/state-id.ts'
import { type BrowserUser, findRequestState, keyOf, type RequestState } from './request-state.ts'
import { type FoundState, findState, findStateByUid } from './state.store.ts'
import { loadBrowser, loadTokens } from './state-load.store.ts'

/** Dependencies of the reads. */
export interface ReadDeps {
  db: Database
  machineClock: Clock
}

/** Models that are read together with their family, the session of the provider and the user. */
const TOKEN_MODELS = new Set(['AccessToken', 'AuthorizationCode', 'DeviceCode', 'RefreshToken'])

/** Endpoints that look a token up as an access token and as a refresh token. */
const LOOK_UP_ROUTES = new Set(['introspection', 'revocation'])

/** The row of this id that has not expired: one that the request knows, or else read with what the request needs next. */
export function readRow(
  deps: ReadDeps,
  { model, idHash }: { model: string; idHash: Buffer },
  ctx: KoaContextWithOIDC | undefined,
): Promise<FoundState | undefined> {
  const now = new Date(deps.machineClock.now())
  if (!ctx) return findState(deps.db, { model, idHash, now })
  const state = findRequestState(ctx)
  const cached = state.rows.get(keyOf(model, idHash))
  if (cached) return cached
  if (model === 'Session' && state.browser) {
    state.user ??= readBrowser(deps, state, idHash)
    return state.user.then(() => state.rows.get(keyOf(model, idHash)))
  }
  if (!TOKEN_MODELS.has(model)) return keep(state, keyOf(model, idHash), findState(deps.db, { model, idHash, now }))
  const isLookUp = LOOK_UP_ROUTES.has(ctx.oidc.route) && (model === 'AccessToken' || model === 'RefreshToken')
  const models = isLookUp ? (['AccessToken', 'RefreshToken'] as const) : ([model] as const)
  const loaded = readTokens(deps, state, { models, idHash, now })
  for (const model of models)
    keep(
      state,
      keyOf(model, idHash),
      loaded.then((found) => found.get(model)),
    )
  return loaded.then((found) => found.get(model))
}

function keep(
  state: RequestState,
  key: string,
  found: Promise<FoundState | undefined>,
): Promise<FoundState | undefined> {
  state.rows.set(key, found)
  return found
}

async function readTokens(
  { db }: ReadDeps,
  state: RequestState,
  key: { models: readonly [string, string?]; idHash: Buffer; now: Date },
): Promise<Map<string, FoundState>> {
  const found = new Map<string, FoundState>()
  for (const token of await loadTokens(db, key)) {
    const { grantId, sessionUid, accountId } = token.found.payload
    found.set(token.model, token.found)
    if (typeof grantId === 'string')
      keep(state, keyOf('Grant', hashStateId(grantId)), Promise.resolve(token.tokenFamily))
    if (typeof sessionUid === 'string') state.sessions.set(sessionUid, token.session)
    if (typeof accountId === 'string') state.users.set(accountId, token.user)
  }
  return found
}

/** The row with this `uid`: cached in the request, or else read. */
export async function readRowByUid(
  { db, machineClock }: ReadDeps,
  { model, uid }: { model: string; uid: string },
  ctx: KoaContextWithOIDC | undefined,
): Promise<FoundState | undefined> {
  const state = findRequestState(ctx)
  if (model === 'Session' && state?.sessions.has(uid)) return state.sessions.get(uid)
  return findStateByUid(db, { model, uid, now: new Date(machineClock.now()) })
}

/** The user of a subject: cached in the request, or else read. Undefined for a disabled or deleted user. */
export async function readUserClaims(
  { db }: ReadDeps,
  subject: string,
  ctx: KoaContextWithOIDC | undefined,
): Promise<UserClaims | undefined> {
  const state = findRequestState(ctx)
  return state?.users.has(subject) ? state.users.get(subject) : findActiveUser(db, { id: subject })
}

/** Grant of a user to a client: cached in the request, or else read. */
export async function readGrant(
  { db }: ReadDeps,
  { userId, clientId }: { userId: string; clientId: string },
  ctx: KoaContextWithOIDC,
): Promise<GrantRecord | undefined> {
  const grants = findRequestState(ctx)?.grants
  const key = grantKey(userId, clientId)
  return grants?.has(key) ? grants.get(key) : findGrantOf(db, { userId, clientId })
}

const grantKey = (userId: string, clientId: string) => `${userId} ${clientId}`

/** The user of the browser that the request expects; read with the session of the provider, if it has one. */
export async function readUser(deps: ReadDeps, ctx: KoaContextWithOIDC): Promise<BrowserUser | undefined> {
  const state = findRequestState(ctx)
  if (!state?.browser) return undefined
  state.user ??= readBrowser(deps, state, null)
  return state.user
}

async function readBrowser(
  { db, machineClock }: ReadDeps,
  state: RequestState,
  idHash: Buffer | null,
): Promise<BrowserUser | undefined> {
  const { browser } = state
  if (!browser) return undefined
  const { userId, sessionId, clientId } = browser
  const loaded = await loadBrowser(db, { idHash, ...browser, now: new Date(machineClock.now()) })
  if (idHash) keep(state, keyOf('Session', idHash), Promise.resolve(loaded.session))
  state.users.set(userId, loaded.user)
  if (clientId !== undefined) state.grants.set(grantKey(userId, clientId), loaded.grant)
  const tokenFamilyId = clientId === undefined ? undefined : readTokenFamilyId(loaded.session, clientId)
  if (tokenFamilyId !== undefined)
    keep(state, keyOf('Grant', hashStateId(tokenFamilyId)), Promise.resolve(loaded.tokenFamily))
  return loaded.signIn && { userId, sessionId, ...loaded.signIn }
}

function readTokenFamilyId(session: FoundState | undefined, clientId: string): string | undefined {
  const { authorizations = {} } = (session?.payload ?? {}) as {
    authorizations?: Record<string, { grantId?: string } | undefined>
  }
  return Object.hasOwn(authorizations, clientId) ? authorizations[clientId]?.grantId : undefined
}
