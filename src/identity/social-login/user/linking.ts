import type { UserId } from '../../../base/id.ts'
import type { ProviderIdentity } from '../../engine/engine.ts'

/** The reason for which a user with a proven identity is not signed in. For the log and the audit log. */
export type LinkRefusal =
  | 'disabled'
  | 'email_missing'
  /** The provider has not verified the address. */
  | 'email_unverified'
  /** A user has the address and has not verified it here. */
  | 'owner_unverified'

/** Decision on a user whose identity a provider has verified. */
export type LinkDecision =
  | { kind: 'sign-in'; userId: UserId }
  | { kind: 'link'; userId: UserId }
  | { kind: 'register'; email: string }
  | { kind: 'refuse'; reason: LinkRefusal; userId: UserId | null }

/** Facts of the database about the user. */
export interface KnownUser {
  /** The user of this identity, not deleted. */
  linked: { userId: UserId; isActived: boolean } | undefined
  /** The user with the address of the identity, not deleted. */
  owner: { userId: UserId; isActived: boolean; isEmailVerified: boolean } | undefined
}

/**
 * Decides on a proven identity (docs/contract/social-login.md#identity-linking). A known identity signs its user in,
 * whatever its current address. Otherwise the address decides, if the provider has verified it: it belongs to a user
 * who has verified it here too, or to none. An attacker may have created a user with an unverified address and wait for
 * its owner, so nothing is linked to such a user. Pure.
 */
export function decideLinking(identity: ProviderIdentity, { linked, owner }: KnownUser): LinkDecision {
  const refuse = (reason: LinkRefusal, userId: UserId | null): LinkDecision => ({ kind: 'refuse', reason, userId })
  if (linked) return linked.isActived ? { kind: 'sign-in', userId: linked.userId } : refuse('disabled', linked.userId)
  if (identity.email === null) return refuse('email_missing', null)
  // Before the owner is read: the owner of an unverified address must not be revealed.
  if (!identity.isEmailVerified) return refuse('email_unverified', null)
  if (!owner) return { kind: 'register', email: identity.email }
  if (!owner.isEmailVerified) return refuse('owner_unverified', owner.userId)
  if (!owner.isActived) return refuse('disabled', owner.userId)
  return { kind: 'link', userId: owner.userId }
}
