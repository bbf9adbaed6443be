import type { KoaContextWithOIDC } from 'oidc-provider'
import { NIL_ID, type SessionId, type UserId } from '../../../base/id.ts'
import type { UserClaims } from '../../claims/user-claims.store.ts'
import type { GrantRecord } from '../../grant/grant.store.ts'
import type { FoundState, StateRow } from './state.store.ts'

/** The signed-in user of a browser, with its authentication. */
export interface BrowserUser {
  userId: UserId
  sessionId: SessionId
  amr: readonly string[]
  acr: string | null
  authTime: Date
}

/** A row to write, with the rows that it depends on. */
export interface BatchRow extends StateRow {
  /** The family that must exist; null for a family itself and for rows without one. */
  tokenFamilyHash: Buffer | null
}

/** A code or token that the request spends. */
export interface SpentState {
  model: string
  idHash: Buffer
  consumedBy: Buffer | null
}

/** The browser of an authorization, for the statement that reads its rows. */
export interface ExpectedBrowser {
  userId: UserId
  sessionId: SessionId
  clientId: string | undefined
}

/**
 * State of one request to the provider: the rows that it has read, the rows to write, and the reactions that its answer
 * waits for. A read and the writes are one statement each, although the provider asks for the rows one by one and does
 * not announce the next ones.
 */
export interface RequestState {
  /** The rows by `keyOf`; undefined for a missing row. */
  rows: Map<string, Promise<FoundState | undefined>>
  /** The sessions of the provider by their `uid`. */
  sessions: Map<string, FoundState | undefined>
  users: Map<string, UserClaims | undefined>
  /** By user and client. */
  grants: Map<string, GrantRecord | undefined>
  browser: ExpectedBrowser | undefined
  user: Promise<BrowserUser | undefined> | undefined
  /** Pending writes, by `keyOf`. */
  writes: Map<string, BatchRow>
  spent: SpentState | undefined
  /** The spent refresh token whose first answer is sent again. */
  repeatOf: Buffer | undefined
  /** Reactions of the service to a token family that the request ended. */
  revocations: Promise<void>[]
}

/** Endpoints whose rows are written at the end of the request. Elsewhere each is written at once. */
const BATCHED_ROUTES = new Set(['authorization', 'resume', 'token'])

/** Models with deferred writes. Other rows are read by other requests before, or must be checked to be new. */
const BATCHED_MODELS = new Set(['AccessToken', 'AuthorizationCode', 'Grant', 'Interaction', 'RefreshToken', 'Session'])

/** The state of each request that has any, by the context of the library. */
const states = new WeakMap<object, RequestState>()

/** The key of a row. */
export const keyOf = (model: string, idHash: Buffer): string => `${model} ${idHash.toString('base64url')}`

/** The state of a request, created at its first use. */
export function findRequestState(ctx: KoaContextWithOIDC): RequestState
/** The state of a request, created at its first use; undefined for a call of the provider outside of one. */
export function findRequestState(ctx: KoaContextWithOIDC | undefined): RequestState | undefined
/** Both of them. */
export function findRequestState(ctx: KoaContextWithOIDC | undefined): RequestState | undefined {
  if (!ctx) return undefined
  const cached = states.get(ctx)
  if (cached) return cached
  const state: RequestState = {
    rows: new Map(),
    sessions: new Map(),
    users: new Map(),
    grants: new Map(),
    browser: undefined,
    user: undefined,
    writes: new Map(),
    spent: undefined,
    repeatOf: undefined,
    revocations: [],
  }
  states.set(ctx, state)
  return state
}

/** The state of a request that has any. */
export const findBegunState = (ctx: object | undefined): RequestState | undefined => ctx && states.get(ctx)

/** No session has this id. */
const NO_SESSION = NIL_ID

/** The session of the browser that must live while codes and families are written; null at the token endpoint. */
export function findBrowserOfRows(ctx: KoaContextWithOIDC | undefined, state: RequestState | undefined): string | null {
  return !ctx || ctx.oidc.route === 'token' ? null : (state?.browser?.sessionId ?? NO_SESSION)
}

/** Whether a request has deferred writes. */
export const hasWrites = ({ writes, spent }: RequestState): boolean => writes.size > 0 || spent !== undefined

/** Defers the write of a row to the end of the request. False when it must be written at once. */
export function leaveToEnd(ctx: KoaContextWithOIDC | undefined, row: BatchRow): boolean {
  if (!ctx || !BATCHED_ROUTES.has(ctx.oidc.route) || !BATCHED_MODELS.has(row.model)) return false
  const state = findRequestState(ctx)
  const key = keyOf(row.model, row.idHash)
  state.writes.set(key, row)
  state.rows.set(key, Promise.resolve({ payload: row.payload, consumedAt: null, consumedBy: null }))
  return true
}

/** Defers the redemption of a code or token to the end of the request. False when it must be made at once. */
export function spendAtEnd(ctx: KoaContextWithOIDC | undefined, spent: SpentState): boolean {
  if (ctx?.oidc.route !== 'token') return false
  const state = findRequestState(ctx)
  if (state.spent) return false
  state.spent = spent
  return true
}

/** A row that the request has read or will write; undefined for any other. */
export function findKnownRow(
  ctx: KoaContextWithOIDC | undefined,
  key: { model: string; idHash: Buffer },
): Promise<FoundState | undefined> | undefined {
  return findBegunState(ctx)?.rows.get(keyOf(key.model, key.idHash))
}

/** Removes a deleted row. */
export function forgetRow(ctx: KoaContextWithOIDC | undefined, key: { model: string; idHash: Buffer }): void {
  const state = findRequestState(ctx)
  state?.writes.delete(keyOf(key.model, key.idHash))
  state?.rows.delete(keyOf(key.model, key.idHash))
}
