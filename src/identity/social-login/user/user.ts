import type { UserId } from '../../../base/id.ts'
import type { Random } from '../../../base/random.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { type RegistrationDeps, registerWithAccount } from '../../account/new-user.ts'
import type { ProviderIdentity } from '../../engine/engine.ts'
import { findUserOfAddress, loadUser } from '../../user/user.ts'
import type { UserRecord } from '../../user-record/user.store.ts'
import { lockIdentity, saveIdentity } from './identity.store.ts'
import { decideLinking, type LinkRefusal } from './linking.ts'

export interface UserDeps extends RegistrationDeps {
  random: Random
}

/** The user of a proven identity, or the reason for none. */
export type ResolvedUser =
  | { kind: 'user'; user: UserRecord; isNewUser: boolean; isNewLink: boolean }
  | { kind: 'refused'; reason: LinkRefusal; userId: UserId | null }

/** Finds, links or registers the user of a proven identity (docs/contract/social-login.md#automatic-profile). */
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
      : await findUserOfAddress(tx, { email: identity.email })
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
  return (await registerWithAccount(deps, tx, { email, name, avatarUrl, trace, now })).user
}
