import type { IdMaker, UserId } from '../../../base/id.ts'
import { notFound, Problem } from '../../../http/problem/problem.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { checkMayManageUser } from '../../access/delegation.ts'
import type { Engine, ProviderIdentity } from '../../engine/engine.ts'
import { hashSecret } from '../flow/flow-state.ts'
import { findLinkIdentity } from '../flow/login-code.store.ts'
import { redeemLoginCode } from '../flow/login-code.ts'
import {
  deleteIdentity,
  findOwnIdentity,
  findWaysOf,
  type IdentityRecord,
  lockIdentity,
  lockWaysAndHoldings,
  lockWaysOf,
  saveIdentity,
  selectIdentities,
  type WaysIn,
} from '../user/identity.store.ts'

/** Checks that the caller is a user with a session: a leaked API key must not add a sign-in method. Throws 403. */
export function checkHasSession(caller: Caller): void {
  if (caller.sessionId !== null) return
  throw new Problem(
    'permission_denied',
    'This needs the session of a user; an API key does not change ways to sign in.',
  )
}

async function listOwnIdentities(db: Database, userId: UserId): Promise<IdentityRecord[]> {
  return selectIdentities(db, userId).orderBy('i.created_at').execute()
}

/** An identity of the caller. Throws 404. */
export async function loadOwnIdentity(db: Database, id: string, caller: Caller): Promise<IdentityRecord> {
  const identity = await findOwnIdentity(db, { id, userId: caller.userId })
  if (!identity) throw notFound('identity')
  return identity
}

/** The identity that a `link_code` connects, without taking the code; undefined when the code is not the caller's, or old. */
export function peekLink(
  db: Database,
  { code, userId, now }: { code: string; userId: UserId; now: Date },
): Promise<ProviderIdentity | undefined> {
  return findLinkIdentity(db, { codeHash: hashSecret(code), userId, now })
}

/** Reason of a refused connection, for the log and the audit log. */
export type LinkRefusalReason = 'code_unknown' | 'code_expired' | 'foreign_code' | 'identity_of_another'

/** A connected identity, or the refusal. The caller commits both: a code is spent. */
export type LinkResult = { kind: 'linked'; identity: IdentityRecord } | { kind: 'refused'; reason: LinkRefusalReason }

/**
 * Connects the identity of a `link_code` with the caller (docs/contract/social-login.md#connecting-providers). Only the
 * user who started the flow can: a code of another user's flow in this browser is refused. No address is compared,
 * because the user proves both sides.
 */
export async function linkIdentity(
  deps: { ids: IdMaker },
  tx: Database,
  input: { code: string; caller: Caller; now: Date },
): Promise<LinkResult> {
  const { caller, now } = input
  const taken = await redeemLoginCode(tx, { code: input.code, purpose: 'link', now })
  if (taken.kind === 'refused') return { kind: 'refused', reason: taken.reason }
  const { userId, identity } = taken.code
  if (userId !== caller.userId) return { kind: 'refused', reason: 'foreign_code' }
  return saveLink(deps, tx, { userId, identity, now })
}

async function saveLink(
  deps: { ids: IdMaker },
  tx: Database,
  { userId, identity, now }: { userId: UserId; identity: ProviderIdentity; now: Date },
): Promise<LinkResult> {
  const known = await lockIdentity(tx, identity)
  if (known?.isLiving && known.identity.userId !== userId) return { kind: 'refused', reason: 'identity_of_another' }
  const saved = { ...identity, id: deps.ids.next<'identity'>(), userId, lastLoginAt: null, now }
  return { kind: 'linked', identity: await saveIdentity(tx, known?.identity, saved) }
}

/** The identities of a user, the oldest first, and whether the enabled one is the only sign-in method. */
export async function describeConnections(
  { engine }: { engine: Engine },
  db: Database,
  userId: UserId,
): Promise<{ identities: IdentityRecord[]; isLastWay: boolean }> {
  const identities = await listOwnIdentities(db, userId)
  if (identities.length === 0) return { identities, isLastWay: false }
  const ways = await findWaysOf(db, userId)
  const enabled = engine.listProviders().map(({ name }) => name)
  const isLastWay = ways.identities.every((identity) => !hasOtherWayIn(ways, identity, enabled))
  return { identities, isLastWay }
}

/** Whether a user can still sign in without an identity: by a password, a passkey or another enabled provider. Pure. */
function hasOtherWayIn(
  { hasPassword, passkeys, identities }: WaysIn,
  without: IdentityRecord,
  enabled: readonly string[],
) {
  if (hasPassword || passkeys > 0) return true
  return identities.some((identity) => identity !== without && enabled.includes(identity.provider))
}

/** Disconnects an identity of the caller. Throws 404, and 409 for the last sign-in method. */
export async function unlinkIdentity(
  { engine }: { engine: Engine },
  tx: Database,
  { id, caller }: { id: string; caller: Caller },
): Promise<IdentityRecord> {
  const ways = await lockWaysOf(tx, caller.userId, id)
  const last = 'This is your last way to sign in. Set a password or connect another provider first.'
  const identity = chooseUnlinked(engine, ways, { id, last })
  await deleteIdentity(tx, identity)
  return identity
}

/** An identity of a user, for an operator. Throws 404. */
export async function loadIdentityOfUser(
  db: Database,
  { id, user }: { id: string; user: string },
): Promise<IdentityRecord> {
  const identity = await findOwnIdentity(db, { id, userId: user as UserId })
  if (!identity) throw notFound('identity')
  return identity
}

/** Disconnects an identity for an operator, who must hold all of its user. Throws 404, 403, 409 for the last way in. */
export async function unlinkIdentityOfUser(
  { engine }: { engine: Engine },
  tx: Database,
  { id, user, caller }: { id: string; user: string; caller: Caller },
): Promise<IdentityRecord> {
  const found = await lockWaysAndHoldings(tx, user as UserId, id)
  if (!found) throw notFound('identity')
  if (caller.userId !== user) checkMayManageUser(caller, found.holdings)
  const last = 'This is the last way of the user to sign in. A password or another provider must be there first.'
  const identity = chooseUnlinked(engine, found.ways, { id, last })
  await deleteIdentity(tx, identity)
  return identity
}

/** The identity to remove, of the locked sign-in methods. Pure. Throws 404 and 409. */
function chooseUnlinked(engine: Engine, ways: WaysIn, { id, last }: { id: string; last: string }): IdentityRecord {
  const identity = ways.identities.find((identity) => identity.id === id)
  if (!identity) throw notFound('identity')
  const enabled = engine.listProviders().map(({ name }) => name)
  if (!hasOtherWayIn(ways, identity, enabled)) throw new Problem('conflict', last)
  return identity
}
