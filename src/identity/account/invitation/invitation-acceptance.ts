import type { AccountId, UserId } from '../../../base/id.ts'
import { invalidField, Problem } from '../../../http/problem/problem.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import { checkShownName } from '../../../http/shape/shown-name.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import {
  type Grant,
  type Holdings,
  holdsGrant,
  listMemberRoleGrants,
  listMembershipGrants,
} from '../../access/delegation.ts'
import { findMemberRoles } from '../../access/role.ts'
import { MEMBER_PATTERNS } from '../../access/system-roles.ts'
import type { PasswordDeps } from '../../password/password.ts'
import { findUserId, hashFirstPassword, proveAddress, registerInvitedUser } from '../../user/invited-user.ts'
import { buildLinkInvalid, hashProofToken } from '../../user/proof/proof-token.ts'
import { foldEmail } from '../../user-record/email-key.ts'
import { type AccountDeps, checkMayJoin, endBeforeJoin, type JoinDeps, type JoinEnds } from '../account.ts'
import { type Candidate, insertAccountMember, lockCandidate, type NamedAccountMember } from '../account-member.store.ts'
import { findActiveUser, findOpenInvitation, markAccepted, type OpenInvitation } from './invitation.store.ts'
import { INVITE_PERMISSION } from './invitation.ts'

/** Dependencies of accepting an invitation. */
export type AcceptanceDeps = Pick<AccountDeps, 'ids'> & JoinDeps & PasswordDeps

/** Input of an acceptance; a new user sends a password. */
export interface Acceptance {
  token: string
  password: string | undefined
  name: string | null
  /** The caller, when the request has a token. */
  signedIn: Caller | undefined
  now: Date
}

/** The accepting user: an existing one, a new one, or none. */
export type PreparedAcceptance =
  | { kind: 'refused'; problem: Problem }
  | { kind: 'user'; userId: UserId }
  | { kind: 'new'; email: string; passwordHash: string }

/** An accepted invitation. */
export interface Accepted {
  invitation: OpenInvitation
  member: NamedAccountMember
  isNewUser: boolean
}

/** Permissions of a user whose only role is `member`, once it belongs to an account. */
const NEW_HOLDINGS: Holdings = { patterns: [], accountPatterns: MEMBER_PATTERNS, membershipPatterns: [], accounts: [] }

/**
 * Determines the accepting user, and hashes the password of a new one. Runs outside any transaction. An existing user
 * with the address must be signed in; another user cannot accept. Throws a 422 on `name` or `password`, for a valid link only,
 * and 409 for an API key.
 */
export async function prepareAcceptance(
  deps: AcceptanceDeps,
  db: Database,
  { token, password, name, signedIn, now }: Acceptance,
): Promise<PreparedAcceptance> {
  if (signedIn && signedIn.sessionId === null)
    throw new Problem('conflict', 'An API key cannot accept an invitation. Sign in and use the session.')
  const invitation = await findOpenInvitation(db, { tokenHash: hashProofToken(token), now, lock: false })
  if (!invitation) return refuse(buildLinkInvalid('unknown_used_or_expired'))
  const { email } = invitation
  const holder = await findUserId(db, email)
  if (signedIn) {
    if (holder === signedIn.userId) return { kind: 'user', userId: signedIn.userId }
    const text = 'This invitation is for another e-mail address. Sign in with that address, or sign out.'
    return refuse(new Problem('conflict', text, { reason: 'other_address' }))
  }
  if (holder) return refuse(buildSignInFirst())
  if (password === undefined)
    throw invalidField('password', 'required', 'is required to accept without being signed in')
  if (name !== null) checkShownName(name)
  return { kind: 'new', email, passwordHash: await hashFirstPassword(deps, { password, owner: { email, name } }) }
}

const refuse = (problem: Problem): PreparedAcceptance => ({ kind: 'refused', problem })

function buildSignInFirst(): Problem {
  const text = 'A user has this e-mail address already. Sign in with it, then accept the invitation.'
  return new Problem('conflict', text, { reason: 'not_signed_in' })
}

/**
 * Accepts an invitation in the caller's transaction: makes the user a member with the existing roles of the invitation,
 * and verifies its address. The inviter must still hold the granted permissions, and must have held them through the
 * token of the invitation. Of two concurrent acceptances one succeeds.
 */
export async function acceptInvitation(
  deps: AcceptanceDeps,
  tx: Database,
  { acceptance, prepared }: { acceptance: Acceptance; prepared: PreparedAcceptance },
): Promise<Accepted | { problem: Problem }> {
  if (prepared.kind === 'refused') return { problem: prepared.problem }
  const { token, name, now } = acceptance
  const invitation = await findOpenInvitation(tx, { tokenHash: hashProofToken(token), now, lock: true })
  if (!invitation) return { problem: buildLinkInvalid('used_meanwhile') }
  const known = await judgeUser(deps, tx, invitation, { ...prepared, now })
  if (known instanceof Problem) return { problem: known }
  const isNewUser = prepared.kind === 'new'
  const user = isNewUser
    ? await registerInvitedUser(deps, tx, { ...prepared, name, now })
    : { id: prepared.userId, name: known.name }
  if (!isNewUser) await proveAddress(tx, { userId: user.id, now })
  const member = await join(deps, tx, { invitation, user, now })
  return { invitation, member, isNewUser }
}

/**
 * The reason for which this user cannot accept a locked invitation, or its name, which a new one does not have yet; what it
 * loses by the acceptance has then ended.
 */
async function judgeUser(
  deps: JoinDeps,
  tx: Database,
  invitation: OpenInvitation,
  prepared: Exclude<PreparedAcceptance, { kind: 'refused' }> & { now: Date },
): Promise<Problem | { name: string | null }> {
  const { account, email, invitedBy } = invitation
  const { now } = prepared
  let holdings = NEW_HOLDINGS
  let name: string | null = null
  let ends: JoinEnds = 'nothing'
  if (prepared.kind === 'user') {
    const { userId } = prepared
    const candidate = await lockCandidate(tx, { account, userId, roles: [] })
    if (!candidate.isLiving || foldEmail(candidate.email ?? '') !== foldEmail(email))
      return buildLinkInvalid('other_address')
    if (candidate.member)
      return new Problem('conflict', 'You are a member of this account already.', { reason: 'member_already' })
    const joining = judgeJoin(deps, candidate, account)
    if (joining instanceof Problem) return joining
    ends = joining
    holdings = candidate.holdings
    name = candidate.name
  }
  const roles = await findMemberRoles(tx, invitation.roles)
  const inviter = await findActiveUser(tx, { id: invitedBy })
  const grants: Grant[] = [
    { pattern: INVITE_PERMISSION, place: account },
    ...listMembershipGrants(holdings, account),
    ...roles.flatMap((role) => listMemberRoleGrants(role, account)),
  ]
  // Present permissions of the inviter, within those of the token that invited.
  const giver = inviter && { ...inviter.holdings, ceiling: invitation.tokenPatterns }
  const mayGive = giver && grants.every((grant) => holdsGrant(giver, grant))
  if (!mayGive) return buildLinkInvalid('inviter_holds_less')
  if (prepared.kind === 'user') await endBeforeJoin(tx, { ends, userId: prepared.userId, now })
  return { name }
}

/** Access that ends by a join, or why an existing user cannot belong to an account beside its others. The link proves the address. */
function judgeJoin(deps: JoinDeps, candidate: Candidate, account: AccountId): JoinEnds | Problem {
  try {
    return checkMayJoin(deps, { ...candidate, isEmailVerified: true }, account)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

async function join(
  deps: AcceptanceDeps,
  tx: Database,
  { invitation, user, now }: { invitation: OpenInvitation; user: { id: UserId; name: string | null }; now: Date },
): Promise<NamedAccountMember> {
  const { account, email } = invitation
  const roles = (await findMemberRoles(tx, invitation.roles)).map(({ id }) => id)
  const id = deps.ids.next<'account member'>()
  const member = await insertAccountMember(tx, { id, account, userId: user.id, roles, now })
  await markAccepted(tx, { id: invitation.id, by: user.id, now })
  return { ...member, email, name: user.name }
}

/** An invitation for the reader of its link, with the step that accepts it. */
export interface InvitationView {
  accountName: string
  email: string
  /** `sign_in`: sign in first. `other_person`: another user is signed in. `register`: set a password. */
  next: 'accept' | 'sign_in' | 'other_person' | 'register'
}

/** The open invitation of a link for the signed-in user, if any; undefined for an invalid link. */
export async function describeInvitation(
  db: Database,
  { token, signedIn, now }: { token: string; signedIn: UserId | undefined; now: Date },
): Promise<InvitationView | undefined> {
  const invitation = await findOpenInvitation(db, { tokenHash: hashProofToken(token), now, lock: false })
  if (!invitation) return undefined
  const { accountName, email } = invitation
  const holder = await findUserId(db, email)
  const next = signedIn ? (holder === signedIn ? 'accept' : 'other_person') : holder ? 'sign_in' : 'register'
  return { accountName, email, next }
}
