import type { AccountId, UserId } from '../../../base/id.ts'
import type { RoleId } from '../../access/role.store.ts'
import type { GroupRole } from '../connection.store.ts'

/** The reason for which a person whom a provider has proven is not signed in. For the log and the audit log only. */
export type EntryRefusal =
  /** The connection was disabled or deleted, or its account, while the person was at the provider. */
  | 'connection_ended'
  | 'email_missing'
  | 'email_unverified'
  /** The provider asserts an address outside of the proven domains of the connection. */
  | 'email_outside'
  /** The address of the known user is outside of the proven domains by now. */
  | 'user_outside'
  /** A user has the address and has not verified it here. */
  | 'member_unverified'
  | 'disabled'
  /** The user holds a role beyond its accounts: it operates the platform. */
  | 'operator'
  /** The user belongs to another account too, which the connection must not reach. */
  | 'user_elsewhere'
  /** The user with the address is not a member of the account, or was removed from it. */
  | 'not_member'
  /** The provider knows the user by another id than before: the address may have a new owner. */
  | 'subject_changed'
  /** The connection does not admit unknown people. */
  | 'jit_off'
  /** The provider proves another person than the user whose session is to be proven. */
  | 'other_person'
  /** The session that is to be proven has ended. */
  | 'session_ended'
  /** The session reaches the account without a proof. */
  | 'proof_not_needed'

/** A person as a provider has proven it, of any kind of connection. */
export interface ProvenPerson {
  /** The provider's own id of the person: stable, never reused. */
  subject: string
  email: string | null
  isEmailVerified: boolean
  name: string | null
  /** The names of its groups; empty when the connection reads none. */
  groups: readonly string[]
}

/** A user who may be the person. */
export interface EntryUser {
  userId: UserId
  isActived: boolean
  isEmailVerified: boolean
  /** Whether its address is of a proven domain of the connection. */
  isInside: boolean
  /** Whether it holds a role beyond its accounts. */
  isOperator: boolean
  isMember: boolean
  accounts: readonly AccountId[]
  /** Whether the connection knows it by another id. */
  hasOtherSubject: boolean
}

/** Facts of the database about a person. */
export interface EntryFacts {
  account: AccountId
  isJit: boolean
  /** Whether the asserted address is of a proven domain of the connection. */
  isInside: boolean
  /** The user of this connection and subject, not deleted. */
  linked: EntryUser | undefined
  /** Else the user with the address, not deleted. */
  owner: EntryUser | undefined
}

/** Decision on a proven person. */
export type EntryDecision =
  | { kind: 'enter'; userId: UserId }
  | { kind: 'register'; email: string }
  | { kind: 'refuse'; reason: EntryRefusal; userId: UserId | null }

/**
 * Decides on a person whom the provider of an account has proven (docs/contract/connections.md#who-may-enter). The provider
 * is in the hands of the account, so it speaks for addresses of the proven domains only, and for users who belong to this
 * account and to nothing else: neither an operator nor a user of another account can be signed in by it. Pure.
 */
export function decideEntry(person: ProvenPerson, facts: EntryFacts): EntryDecision {
  const refuse = (reason: EntryRefusal, userId: UserId | null = null): EntryDecision => ({
    kind: 'refuse',
    reason,
    userId,
  })
  // Checked before any look-up: an address that the provider may not assert must reveal nothing.
  if (person.email === null) return refuse('email_missing')
  if (!facts.isInside) return refuse('email_outside')
  if (!person.isEmailVerified) return refuse('email_unverified')
  const { linked, owner } = facts
  const user = linked ?? owner
  if (!user) return facts.isJit ? { kind: 'register', email: person.email } : refuse('jit_off')
  const reason = findUserFault(user, { account: facts.account, isLinked: linked !== undefined })
  return reason ? refuse(reason, user.userId) : { kind: 'enter', userId: user.userId }
}

function findUserFault(
  user: EntryUser,
  { account, isLinked }: { account: AccountId; isLinked: boolean },
): EntryRefusal | undefined {
  if (user.isOperator) return 'operator'
  if (user.accounts.some((other) => other !== account)) return 'user_elsewhere'
  if (!user.isMember) return 'not_member'
  if (!user.isInside) return 'user_outside'
  if (!isLinked && !user.isEmailVerified) return 'member_unverified'
  if (!isLinked && user.hasOtherSubject) return 'subject_changed'
  return user.isActived ? undefined : 'disabled'
}

/** Facts about the user of a session that a connection is to prove. */
export interface ProofFacts {
  isSessionOpen: boolean
  /** Whether the connection keeps its account from unproven sessions of the user. */
  isNarrowed: boolean
  /** Whether the asserted address is of a proven domain of the connection. */
  isInside: boolean
  isSameAddress: boolean
  /** The user whom the connection knows by the id of the person. */
  knownUser: UserId | null
  user: EntryUser
}

/**
 * The reason for which a proven person does not prove the session of a user of several accounts; undefined when it does
 * (docs/contract/connections.md#members-of-several-accounts). The first proof links the person by the address of the user,
 * which must be verified here; later ones must be of the same person. Pure.
 */
export function findProofFault(person: ProvenPerson, facts: ProofFacts): EntryRefusal | undefined {
  const { user, knownUser } = facts
  if (!facts.isSessionOpen) return 'session_ended'
  if (person.email === null) return 'email_missing'
  if (!facts.isInside) return 'email_outside'
  if (!person.isEmailVerified) return 'email_unverified'
  if (knownUser !== null && knownUser !== user.userId) return 'other_person'
  if (user.isOperator) return 'operator'
  if (!user.isMember) return 'not_member'
  if (!user.isInside) return 'user_outside'
  if (knownUser === null) {
    if (user.hasOtherSubject) return 'subject_changed'
    if (!facts.isSameAddress) return 'other_person'
    if (!user.isEmailVerified) return 'member_unverified'
  }
  if (!user.isActived) return 'disabled'
  return facts.isNarrowed ? undefined : 'proof_not_needed'
}

/**
 * The roles of a membership after a sign-in (docs/contract/connections.md#roles-by-groups). Roles that the connection can
 * give follow the groups; all others stay. `kept` is a role that the last one who has it keeps. Pure.
 */
export function decideRoles(input: {
  groups: readonly string[]
  groupRoles: readonly GroupRole[]
  defaultRole: RoleId | null
  held: readonly RoleId[]
  kept: RoleId | undefined
}): RoleId[] {
  const { groups, groupRoles, defaultRole, held, kept } = input
  const inGroups = new Set(groups)
  const byGroup = groupRoles.filter(({ group }) => inGroups.has(group)).map(({ role }) => role)
  const given = byGroup.length > 0 || defaultRole === null ? byGroup : [defaultRole]
  const governed = new Set([...groupRoles.map(({ role }) => role), ...(defaultRole === null ? [] : [defaultRole])])
  const staying = held.filter((role) => !governed.has(role) || role === kept)
  return [...new Set([...staying, ...given])].sort()
}
