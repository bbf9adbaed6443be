import type { AccountId, IdMaker, UserId } from '../../../base/id.ts'
import type { Random } from '../../../base/random.ts'
import { type EventDraft, recordEvents } from '../../../event/occurrence/event.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { openAccountFor } from '../../account/account.ts'
import type { ProviderIdentity } from '../../engine/engine.ts'
import { findUserOfAddress, loadUser, registerUser } from '../../user/user.ts'
import type { UserRecord } from '../../user-record/user.store.ts'
import { lockIdentity, saveIdentity } from './identity.store.ts'
import { decideLinking, type LinkRefusal } from './linking.ts'

/** Longest name of an account, in characters. */
const ACCOUNT_NAME_LIMIT = 200

export interface UserDeps {
  ids: IdMaker
  random: Random
  /** `ENABLE_API_EVENT_QUEUE`. */
  enableApiEventQueue: boolean
}

/** The user of a proven identity, or why there is none. */
export type ResolvedUser =
  | { kind: 'user'; user: UserRecord; isNewUser: boolean; isNewLink: boolean }
  | { kind: 'refused'; reason: LinkRefusal; userId: UserId | null }

/**
 * Finds, links or registers the user of a proven identity, in the caller's transaction. A new user gets the role `member`
 * and an account of its own (docs/contract/social-login.md#automatic-profile).
 */
export async function resolveUser(
  deps: UserDeps,
  tx: Database,
  input: { identity: ProviderIdentity; trace: string | null; now: Date },
): Promise<ResolvedUser> {
  const { identity, now } = input
  const known = await lockIdentity(tx, identity)
  const linked = known?.isLiving ? await loadUser(tx, known.identity.userId) : undefined
  const owner =
    linked || identity.email === null || !identity.isEmailVerified
      ? undefined
      : await findUserOfAddress(tx, identity.email)
  const decision = decideLinking(identity, {
    linked: linked && { userId: linked.id, isActived: linked.isActived },
    owner: owner && { userId: owner.id, isActived: owner.isActived, isEmailVerified: owner.emailVerifiedAt !== null },
  })
  if (decision.kind === 'refuse') return { kind: 'refused', reason: decision.reason, userId: decision.userId }
  const user =
    decision.kind === 'register' ? await register(deps, tx, { ...input, email: decision.email }) : (linked ?? owner)
  if (!user) throw new Error('a decision that names a user has one')
  const saved = { ...identity, id: deps.ids.next<'identity'>(), userId: user.id, lastLoginAt: now, now }
  await saveIdentity(tx, known?.identity, saved)
  return { kind: 'user', user, isNewUser: decision.kind === 'register', isNewLink: decision.kind !== 'sign-in' }
}

async function register(
  deps: UserDeps,
  tx: Database,
  input: { identity: ProviderIdentity; email: string; trace: string | null; now: Date },
): Promise<UserRecord> {
  const { identity, email, trace, now } = input
  const { name, avatarUrl } = identity
  const user = await registerUser(deps, tx, { email, emailVerifiedAt: now, name, avatarUrl, now })
  const account = await openAccountFor(deps, tx, { name: nameAccount(name, email), userId: user.id, now })
  await recordEvents(
    deps,
    tx,
    [draftCreation('user', user.id, trace), draftCreation('account', account.id, trace)],
    now,
  )
  return user
}

/** The user's name, or the part of the address before the `@`. */
function nameAccount(name: string | null, email: string): string {
  return (name ?? email.split('@', 1)[0] ?? email).slice(0, ACCOUNT_NAME_LIMIT)
}

/** The event that the route of this resource records for a creation, so that subscribers hear of every new one. */
function draftCreation(resource: 'user' | 'account', id: UserId | AccountId, trace: string | null): EventDraft {
  return {
    type: `${resource}.create`,
    accountScope: resource === 'account' ? 'account' : 'none',
    account: resource === 'account' ? (id as AccountId) : null,
    resource,
    action: 'create',
    resourceId: id,
    url: `/api/v3/identity/${resource}/${id}`,
    trace,
  }
}
