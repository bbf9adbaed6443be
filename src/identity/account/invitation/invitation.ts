import type { AccountId } from '../../../base/id.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { notFound, Problem } from '../../../http/problem/problem.ts'
import { type Caller, includesAccount } from '../../../http/shape/caller.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { checkHoldsGrants, type Grant, listHeldPatterns, listMemberRoleGrants } from '../../access/delegation.ts'
import { checkMemberRoles, lockMemberRoles } from '../../access/role.ts'
import { MEMBER_PATTERNS } from '../../access/system-roles.ts'
import { buildLinkMail } from '../../mail/link-mail.ts'
import { checkCanSend, readInvitationRoom, writeMail } from '../../mail/outbox.ts'
import type { LinkDeps } from '../../user/password/password-reset.ts'
import { createProofToken } from '../../user/proof/proof-token.ts'
import { type AccountTarget, keepAccount } from '../account.store.ts'
import {
  countInvitations,
  findInvitation,
  type InvitationRecord,
  replaceInvitation,
  revokeOpenInvitation,
} from './invitation.store.ts'

/** Lifetime of an invitation. */
export const INVITATION_LIFETIME_MS = 7 * 24 * 3_600_000

/** Limits of open invitations of an account, and of new ones in a day, against bulk mail. */
export const OPEN_LIMIT = 100
const DAILY_LIMIT = 200

/** Limit of new ones of an account to one address in a day: one account uses up no limit of the address over all accounts. */
const ADDRESS_LIMIT = 5
const DAY_MS = 24 * 3_600_000

/** The permission for invitations. */
export const INVITE_PERMISSION = 'account-member:invite'

/** Permissions of a new member without its own roles in an account, by the role `member`. */
function listNewMemberGrants(account: AccountId): Grant[] {
  return listMemberRoleGrants({ patterns: MEMBER_PATTERNS }, account)
}

/**
 * Invites an address to an account and sends the link (docs/contract/identity.md#invitations), in the caller's
 * transaction. Replaces the open invitation of the same address. Does not reveal whether a user has this address.
 * Throws 404 for an account outside the caller's scope, 422 for an unknown or global role, 403 for a membership beyond
 * the caller's permissions there, 409 `limit_reached`, 503 when no mail can be sent.
 */
export async function createInvitation(
  deps: LinkDeps,
  tx: Database,
  input: {
    target: AccountTarget
    email: string
    roles: readonly string[]
    texts: Texts
    caller: Caller
    now: Date
  },
): Promise<InvitationRecord> {
  const { target, email, roles: ids, texts, caller, now } = input
  checkCanSend(deps)
  const account = includesAccount(target.scope, target.id as AccountId)
    ? await keepAccount(tx, { id: target.id })
    : undefined
  if (!account) throw notFound('account')
  checkHoldsGrants(caller, listNewMemberGrants(account.id), 'invite to this account')
  const found = await lockMemberRoles(tx, ids)
  const roles = checkMemberRoles(found, { caller, ids, held: [], account: account.id })
  await checkLimits(tx, account.id, { email, now })
  const { token, tokenHash } = createProofToken(deps.random)
  const expiresAt = new Date(now.getTime() + INVITATION_LIFETIME_MS)
  const invitation = await replaceInvitation(tx, {
    id: deps.ids.next<'invitation'>(),
    account: account.id,
    email,
    roles,
    tokenHash,
    invitedBy: caller.userId,
    tokenPatterns: listHeldPatterns(caller, account.id),
    expiresAt,
    now,
  })
  await checkRecipient(tx, email)
  const content = buildLinkMail('invitation', {
    texts,
    named: { account: account.name },
    link: `${deps.baseUrl()}/auth/invitation?token=${token}`,
    serviceName: deps.serviceName,
  })
  await writeMail(deps, tx, { kind: 'invitation', to: email, content, expiresAt, now })
  return invitation
}

async function checkLimits(tx: Database, account: AccountId, { email, now }: { email: string; now: Date }) {
  const since = new Date(now.getTime() - DAY_MS)
  const { open, recent, recentTo } = await countInvitations(tx, account, { email, now, since })
  if (open >= OPEN_LIMIT)
    throw new Problem('limit_reached', `An account has at most ${OPEN_LIMIT} open invitations. Revoke one first.`)
  if (recent >= DAILY_LIMIT)
    throw new Problem('limit_reached', `An account sends at most ${DAILY_LIMIT} invitations in a day. Go on tomorrow.`)
  if (recentTo >= ADDRESS_LIMIT)
    throw new Problem(
      'limit_reached',
      `An account sends at most ${ADDRESS_LIMIT} invitations to one address in a day. Ask its owner to look for the last one.`,
    )
}

/** Checks the limit of the address last, behind every other lock. */
async function checkRecipient(tx: Database, email: string): Promise<void> {
  if ((await readInvitationRoom(tx, email)) > 0) return
  throw new Problem('limit_reached', 'Many invitations went to this address. Invite it again tomorrow.', {
    reason: 'recipient_limit',
  })
}

/** Revokes an open invitation. Throws 404, also outside the scope and for a revoked one, 409 for an accepted one. */
export async function revokeInvitation(
  tx: Database,
  input: { target: AccountTarget; id: string; now: Date },
): Promise<InvitationRecord> {
  const { target, id, now } = input
  const account = target.id as AccountId
  if (!includesAccount(target.scope, account)) throw notFound('account')
  const revoked = await revokeOpenInvitation(tx, { id, account, now })
  if (revoked) return revoked
  const found = await findInvitation(tx, { id, account })
  if (found?.acceptedAt) throw new Problem('conflict', 'This invitation was accepted. Remove the member instead.')
  throw notFound('invitation')
}
