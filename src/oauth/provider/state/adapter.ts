import Provider, { type Adapter, type AdapterPayload, errors } from 'oidc-provider'
import type { Clock } from '../../../base/clock.ts'
import { isUuid } from '../../../base/id.ts'
import type { Keyring } from '../../../base/keyring.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { registerDynamicClient } from '../../client/client-metadata.ts'
import { findGrantIdOf, hashStateId, readJwtTokenId, revealJwt } from '../../grant/state-id.ts'
import { bindRefresh, isRefreshRepeat, markRepeat, type RefreshRules } from './refresh-repeat.ts'
import {
  findBrowserOfRows,
  findKnownRow,
  findRequestState,
  forgetRow,
  leaveToEnd,
  spendAtEnd,
} from './request-state.ts'
import {
  consumeState,
  deleteState,
  deleteTokenFamilyModel,
  type FoundState,
  findStateByUserCode,
  insertNewState,
  notePoll,
  type StateRow,
  upsertState,
} from './state.store.ts'
import { writeStateBatch } from './state-batch.store.ts'
import { readRow, readRowByUid } from './state-reader.ts'
import { admitStranger, findStrangerRow, REGISTRATION_COUNTED_MS } from './stranger.ts'

/** Dependencies of the state of the provider. */
export interface StateDeps {
  db: Database
  keyring: Keyring
  /** The clock of the machine, which the provider itself reads. */
  machineClock: Clock
  /** `RATE_LIMIT_STRICT_PER_MINUTE`, from which the limits of strangers' rows follow. */
  strictPerMinute: number
  refresh: RefreshRules
  /** The client with this id as the provider reads it. */
  findClient: (id: string) => Promise<AdapterPayload | undefined>
  /** The valid cached payload of this client: the same object until the client changes. */
  findKeptClient: (id: string) => AdapterPayload | undefined
}

/** Members of a payload that are ids of other rows, and so credentials: stored encrypted. */
const SEALED_MEMBERS = ['deviceCode', 'parJti'] as const

const SEAL_CONTEXT = 'oauth-state'

/** Minimum interval between polls of a device. Clients wait 5 s (RFC 8628 section 3.2); a second is for the network. */
const POLL_SPACING_MS = 4_000

/** Models that are also found by another key: their own id is stored encrypted. */
const SEALED_ID_MODELS = new Set(['DeviceCode', 'Session'])

/** The reader of a session with its token, which never writes. */
const SESSION_QUESTIONS = new Set(['introspection', 'token', 'userinfo'])

/**
 * The state of the provider in PostgreSQL (docs/contract/oauth.md#state). Ids are stored as hashes, so the database
 * contains no usable credential. The writes of a request are one statement at its end (`writeAtRequestEnd`), with the
 * conditional update that spends a code or token: of any number of redemptions exactly one succeeds.
 */
export function buildAdapter(deps: StateDeps): (model: string) => Adapter {
  return (model) => (model === 'Client' ? buildClientAdapter(deps) : buildStateAdapter(deps, model))
}

function buildStateAdapter(deps: StateDeps, model: string): Adapter {
  const { db, machineClock } = deps
  const now = () => new Date(machineClock.now())
  const keyOf = (id: string) => ({ model, idHash: hashStateId(id) })
  return {
    upsert: async (id, payload, expiresIn) => {
      const expiresAt = new Date(machineClock.now() + (expiresIn ?? 0) * 1000)
      const key = keyOf(id)
      const stranger = findStrangerRow({ model, payload }, Provider.ctx)
      if (stranger) await admitStranger(deps, { ...key, ...stranger, expiresAt, now: now() })
      const sealedId = SEALED_ID_MODELS.has(model) ? await sealId(deps, key, id) : undefined
      await writeRow(deps, buildRow(deps, { ...key, payload, expiresAt, sealedId }))
    },
    find: async (id) => {
      const jwt = model === 'AccessToken' || model === 'RefreshToken' ? readJwtTokenId(revealJwt(id)) : undefined
      // Introspection and revocation look a token up in both models; a refresh token is not a JWT.
      if (jwt && model === 'RefreshToken') return undefined
      const key = jwt?.jti ?? id
      const found = await readRow(deps, keyOf(key), Provider.ctx)
      if (!found || (jwt && found.payload.tokenHash !== jwt.tokenHash)) return undefined
      if (model === 'RefreshToken') refuseRepeat(deps, found, key)
      if (model === 'DeviceCode') await refuseEarlyPoll(db, found, keyOf(key))
      return toPayload(deps, found, key)
    },
    findByUid: async (uid) => {
      const found = await readRowByUid(deps, { model, uid }, Provider.ctx)
      // A check of a token's session needs no id of it.
      const isAsked = model === 'Session' && SESSION_QUESTIONS.has(Provider.ctx?.oidc?.route ?? '')
      return found && toPayload(deps, found, isAsked ? '' : undefined)
    },
    findByUserCode: async (userCode) => {
      const found = await findStateByUserCode(db, { model, userCodeHash: hashStateId(userCode), now: now() })
      return found && { ...toPayload(deps, found, undefined), userCode }
    },
    consume: (id) => consumeOnce(deps, model, id),
    destroy: async (id) => {
      forgetRow(Provider.ctx, keyOf(id))
      await deleteState(db, keyOf(id))
    },
    revokeByGrantId: async (grantId) => {
      await deleteTokenFamilyModel(db, { grantId, model })
    },
  }
}

async function writeRow({ db, machineClock }: StateDeps, row: StateRow): Promise<void> {
  if (row.model === 'ReplayDetection') {
    // Two proofs with one id at once: the second insert finds the first.
    if (await insertNewState(db, row)) return
    throw new errors.InvalidRequest('the proof or assertion was used before')
  }
  // Tokens of a family that has just been revoked are not stored, so they are invalid. The winning redemption still
  // answers: of several at once, exactly one succeeds.
  const tokenFamilyHash = row.model === 'Grant' || row.grantId === null ? null : hashStateId(row.grantId)
  if (leaveToEnd(Provider.ctx, { ...row, tokenFamilyHash })) return
  if (row.model !== 'Grant') return upsertState(db, row, tokenFamilyHash)
  const now = new Date(machineClock.now())
  const browser = findBrowserOfRows(Provider.ctx, findRequestState(Provider.ctx))
  await writeStateBatch(db, { spent: undefined, rows: [{ ...row, tokenFamilyHash }], browser, now })
}

/** The encrypted id of a row: as the request has read it, if that is under the first key, else encrypted now. */
async function sealId({ keyring }: StateDeps, key: { model: string; idHash: Buffer }, id: string): Promise<string> {
  const known = (await findKnownRow(Provider.ctx, key))?.payload.sealedId
  if (typeof known === 'string' && known.startsWith(keyring.currentPrefix)) return known
  return keyring.seal(id, SEAL_CONTEXT)
}

function buildRow(
  { keyring }: StateDeps,
  input: { model: string; idHash: Buffer; payload: AdapterPayload; expiresAt: Date; sealedId: string | undefined },
): StateRow {
  const { model, idHash, expiresAt, sealedId } = input
  const { jti, userCode, ...payload } = input.payload as AdapterPayload & { jti?: string }
  // A code that a user types is short; it is found by its hash. The id itself is a credential.
  const rest: Record<string, unknown> = { ...payload }
  for (const name of SEALED_MEMBERS)
    if (typeof rest[name] === 'string') rest[name] = keyring.seal(rest[name], SEAL_CONTEXT)
  const session = rest.session as Record<string, unknown> | undefined
  if (session) rest.session = { ...session, cookie: undefined }
  if (sealedId !== undefined) rest.sealedId = sealedId
  const grantId = (model === 'Grant' ? jti : payload.grantId) ?? null
  const consent = grantId === null ? null : findGrantIdOf(grantId)
  return {
    model,
    idHash,
    payload: rest,
    grantId,
    consent: consent !== null && isUuid(consent) ? consent : null,
    uid: payload.uid ?? null,
    userCodeHash: typeof userCode === 'string' ? hashStateId(userCode) : null,
    expiresAt,
  }
}

function toPayload({ keyring }: StateDeps, found: FoundState, id: string | undefined): AdapterPayload {
  // The models take their known members: `sealedId` and `tokenHash` are dropped.
  const payload: Record<string, unknown> = { ...found.payload }
  for (const name of SEALED_MEMBERS)
    if (typeof payload[name] === 'string') payload[name] = keyring.open(payload[name], SEAL_CONTEXT)
  const { sealedId } = payload
  const jti = id ?? (typeof sealedId === 'string' ? keyring.open(sealedId, SEAL_CONTEXT) : undefined)
  payload.jti = jti
  if (found.consumedAt) payload.consumed = Math.floor(found.consumedAt.getTime() / 1000)
  return payload as AdapterPayload
}

/** Refuses a device that asks again too early while its user has not answered (RFC 8628 section 3.5), also in parallel. */
async function refuseEarlyPoll(db: Database, found: FoundState, key: { model: string; idHash: Buffer }): Promise<void> {
  const { accountId, error } = found.payload
  if (Provider.ctx?.oidc?.route !== 'token' || accountId !== undefined || error !== undefined) return
  if (!(await notePoll(db, { ...key, spacingMs: POLL_SPACING_MS }))) throw new errors.SlowDown()
}

/** Refuses the repeat of a redemption by the same client, whose answer `answerRepeat` sends again. */
function refuseRepeat(deps: StateDeps, found: FoundState, id: string): void {
  const ctx = Provider.ctx
  if (!ctx || !isRefreshRepeat(deps, found, ctx)) return
  markRepeat(ctx, hashStateId(id))
  throw new errors.InvalidGrant('the refresh token was used a moment ago')
}

async function consumeOnce(deps: StateDeps, model: string, id: string): Promise<void> {
  const { db, machineClock } = deps
  const ctx = Provider.ctx
  const idHash = hashStateId(id)
  const consumedBy = model === 'RefreshToken' && ctx ? bindRefresh(ctx) : null
  if (spendAtEnd(ctx, { model, idHash, consumedBy })) return
  if (await consumeState(db, { model, idHash, consumedBy, now: new Date(machineClock.now()) })) return
  if (model === 'PushedAuthorizationRequest') throw new errors.InvalidRequestUri('the request_uri was used before')
  throw new errors.InvalidGrant('it was used before')
}

/** Clients come from a table of the service; a dynamic registration writes into it. */
function buildClientAdapter(deps: StateDeps): Adapter {
  const { db, machineClock, findClient } = deps
  const nothing = async () => undefined
  return {
    upsert: async (id, payload) => {
      const stranger = findStrangerRow({ model: 'Client', payload }, Provider.ctx)
      const now = new Date(machineClock.now())
      const expiresAt = new Date(machineClock.now() + REGISTRATION_COUNTED_MS)
      if (stranger) await admitStranger(deps, { idHash: hashStateId(id), ...stranger, expiresAt, now })
      try {
        await registerDynamicClient(db, { id, payload, now })
      } catch (error) {
        throw error instanceof Problem ? new errors.InvalidClientMetadata(error.detail) : error
      }
    },
    find: findClient,
    findByUid: nothing,
    findByUserCode: nothing,
    consume: nothing,
    destroy: nothing,
    revokeByGrantId: nothing,
  }
}
