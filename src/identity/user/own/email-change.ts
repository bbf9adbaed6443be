import type { UserId } from '../../../base/id.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { invalidField, notFound, Problem } from '../../../http/problem/problem.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import { type Database, isUniqueViolation } from '../../../postgres/statement/database.ts'
import { buildLinkMail } from '../../mail/link-mail.ts'
import { checkCanSend, writeMail } from '../../mail/outbox.ts'
import { endUserAccess } from '../../session/session.ts'
import { foldEmail } from '../../user-record/email-key.ts'
import { updateUser } from '../../user-record/user.store.ts'
import type { LinkDeps } from '../password/password-reset.ts'
import { buildLinkInvalid, createProofToken, hashProofToken } from '../proof/proof-token.ts'
import {
  type ConfirmedEmailChange,
  confirmEmailChange,
  endEmailChange,
  lockConfirmedChange,
  lockForEmailChange,
  replaceEmailChange,
} from './email-change.store.ts'
import { readOwnSession } from './own-user.ts'

/** Lifetime of both links of a change. */
export const EMAIL_CHANGE_LIFETIME_MS = 3_600_000

/** Changes that a user may ask for in this time: each sends a mail to an address that the user chooses. */
export const EMAIL_CHANGES_LIMIT = 5
export const EMAIL_CHANGES_WINDOW_MS = 24 * 3_600_000

/**
 * Asks for another address of the caller (docs/contract/identity.md#own-e-mail-address), in the caller's transaction: a
 * link to each address, and the change is made with the use of the second. Does not look whether the new address is
 * taken. Replaces an earlier request. Throws 409 for an API key and over the limit, 422 for the present address, 503
 * when no mail can be sent.
 */
export async function requestEmailChange(
  deps: LinkDeps,
  tx: Database,
  { caller, email, texts, now }: { caller: Caller; email: string; texts: Texts; now: Date },
): Promise<void> {
  const session = readOwnSession(caller)
  checkCanSend(deps)
  const { userId } = caller
  const since = new Date(now.getTime() - EMAIL_CHANGES_WINDOW_MS)
  const user = await lockForEmailChange(tx, { userId, newEmail: email, since })
  if (!user) throw notFound('user')
  if (foldEmail(email) === foldEmail(user.email)) throw invalidField('email', 'unchanged', 'is your address already')
  if (user.isConnected) {
    const text =
      'Your account signs you in by its own provider, which knows you by this address. Ask its administrators.'
    throw new Problem('conflict', text, { reason: 'connected' })
  }
  if (user.recent >= EMAIL_CHANGES_LIMIT) {
    const text = `You asked for ${EMAIL_CHANGES_LIMIT} changes of your address in 24 hours. Try again tomorrow.`
    throw new Problem('limit_reached', text)
  }
  if (user.room === 0)
    throw new Problem('limit_reached', 'Many such mails went to the new address. Try again tomorrow.', {
      reason: 'recipient_limit',
    })
  const [forNew, forOld] = [createProofToken(deps.random), createProofToken(deps.random)]
  const expiresAt = new Date(now.getTime() + EMAIL_CHANGE_LIFETIME_MS)
  await replaceEmailChange(tx, {
    id: deps.ids.next<'email change'>(),
    userId,
    session,
    newEmail: email,
    oldEmail: user.email,
    newTokenHash: forNew.tokenHash,
    oldTokenHash: forOld.tokenHash,
    expiresAt,
    now,
  })
  const facts = ({ token }: { token: string }) => ({
    texts,
    link: `${deps.baseUrl()}/auth/email-change?token=${token}`,
    serviceName: deps.serviceName,
  })
  const [toNew, toOld] = [
    buildLinkMail('new-address', facts(forNew)),
    buildLinkMail('old-address', { ...facts(forOld), named: { email } }),
  ]
  await writeMail(deps, tx, { kind: 'email-change', to: email, content: toNew, expiresAt, now })
  await writeMail(deps, tx, { kind: 'email-change', to: user.email, content: toOld, expiresAt, now })
}

/** Withdraws the open change of the caller. Throws 404 without one, 409 for an API key. */
export async function cancelEmailChange(
  tx: Database,
  { caller, now }: { caller: Caller; now: Date },
): Promise<{ userId: UserId }> {
  readOwnSession(caller)
  const { userId } = caller
  if (!(await lockForEmailChange(tx, { userId, since: now })) || !(await endEmailChange(tx, { userId, now })))
    throw notFound('change of the e-mail address')
  return { userId }
}

/**
 * Confirms one address of a change by its link, and spends the link, in the caller's transaction. With the second link
 * the address changes, and counts as verified; every session ends but the one that asked, and what else a change of the
 * address by an administrator ends (docs/contract/sessions.md#what-ends-what). A change to an address that another user
 * has by now ends, as a link that is not valid.
 */
export async function confirmByLink(
  tx: Database,
  { token, now }: { token: string; now: Date },
): Promise<{ userId: UserId; isChanged: boolean } | { problem: Problem; userId?: UserId }> {
  const change = await lockConfirmedChange(tx, { tokenHash: hashProofToken(token), now })
  if (!change) return { problem: buildLinkInvalid('unknown_used_or_expired') }
  const { userId } = change
  // Only the reader of mails to the new address learns of it, not the caller.
  if (change.isTaken && (change.isNew || change.isOtherConfirmed)) {
    await endEmailChange(tx, { userId, now })
    return { problem: buildLinkInvalid('address_taken'), userId }
  }
  await confirmEmailChange(tx, change)
  if (!change.isOtherConfirmed) return { userId, isChanged: false }
  await makeEmailChange(tx, change, now)
  return { userId, isChanged: true }
}

async function makeEmailChange(
  tx: Database,
  { userId, session, newEmail, isClosedThere }: ConfirmedEmailChange,
  now: Date,
): Promise<void> {
  // Ends the change too.
  await endUserAccess(tx, { userId, ...(!isClosedThere && { kept: session }), now })
  const explain = (error: unknown) =>
    isUniqueViolation(error, 'user_email_key') ? buildLinkInvalid('address_taken') : error
  await updateUser(tx, userId, { email: newEmail, emailVerifiedAt: now, now }, explain)
}
