import { Problem } from '../../http/problem/problem.ts'
import type { EntryRefusal } from '../connection/entry/decide-entry.ts'
import type { EngineRefusal } from '../engine/engine.ts'
import type { FlowRefusal } from './social-login.ts'
import type { LinkRefusal } from './user/linking.ts'

/** Every reason for which a flow does not end in a session. */
export type Refusal =
  | FlowRefusal
  | EngineRefusal
  | LinkRefusal
  | EntryRefusal
  | 'code_unknown'
  | 'code_expired'
  | 'verifier_wrong'

/** The reasons with a remedy for the user; all others have one text. */
const TOLD: Partial<Record<Refusal, ['email_required' | 'email_not_verified' | 'identity_not_linked', string]>> = {
  email_missing: [
    'email_required',
    'The provider shares no e-mail address. Allow it to share one, or sign in another way and connect the provider in your profile.',
  ],
  email_unverified: [
    'email_not_verified',
    'The provider has not verified your e-mail address. Confirm it there, or sign in another way and connect the provider in your profile.',
  ],
  owner_unverified: [
    'identity_not_linked',
    'A user with your e-mail address exists here. Sign in the way you did before, then connect the provider in your profile.',
  ],
}

/** Reason that the user may know, for refusals after which only a new sign-in helps. */
export const CAUSES = ['declined', 'disabled', 'expired', 'not_admitted', 'other_browser', 'used'] as const

type Cause = (typeof CAUSES)[number]

/** Without a reason in the answer, because the platform does not control the provider. */
const NOT_ADMITTED = {
  path: 'code',
  code: 'not_admitted',
  message: 'proves a person whom the account does not admit; ask an administrator of the account',
} as const

/** The cause of a refusal, the parameter of the callback that shows it, and a sentence. */
const CAUSE_OF: Partial<Record<Refusal, { path: string; code: Cause; message: string }>> = {
  denied: { path: 'error', code: 'declined', message: 'says that the user or the provider declined' },
  // The user has proven the identity, so the answer may say that its user is disabled.
  disabled: { path: 'code', code: 'disabled', message: 'proves a user who is disabled here; ask an administrator' },
  state_expired: { path: 'state', code: 'expired', message: 'has expired; start again' },
  foreign_browser: {
    path: 'state',
    code: 'other_browser',
    message: 'was started in another browser; start again in this one',
  },
  connection_ended: NOT_ADMITTED,
  email_outside: NOT_ADMITTED,
  jit_off: NOT_ADMITTED,
  member_unverified: NOT_ADMITTED,
  not_member: NOT_ADMITTED,
  other_person: NOT_ADMITTED,
  proof_not_needed: NOT_ADMITTED,
  operator: NOT_ADMITTED,
  subject_changed: NOT_ADMITTED,
  user_elsewhere: NOT_ADMITTED,
  user_outside: NOT_ADMITTED,
  session_ended: { path: 'state', code: 'expired', message: 'is of a session that has ended; sign in again' },
  state_replayed: { path: 'state', code: 'used', message: 'was used already; start again' },
}

/**
 * The problem for a refused sign-in (docs/contract/social-login.md#failures). The reason is in the log and the audit log;
 * the user gets one sentence for all of them, unless there is something to do at the provider.
 */
export function buildRefusal(reason: Refusal, detail: string | null = null): Problem {
  const told = TOLD[reason]
  const logged = { reason: detail === null ? reason : `${reason}: ${detail}` }
  if (told) return new Problem(told[0], told[1], logged)
  const cause = CAUSE_OF[reason]
  return new Problem('social_login_failed', describeFailure(cause), { ...logged, ...(cause && { errors: [cause] }) })
}

/** The `error` parameter of a deep link: the word of OAuth for a denial, else the code of the problem. */
export function toErrorParameter(reason: Refusal, problem: Problem): string {
  return reason === 'denied' ? 'access_denied' : problem.code
}

function describeFailure(cause: { code: Cause } | undefined): string {
  if (cause?.code === 'not_admitted')
    return 'The sign-in was not completed: the account does not admit you. Ask an administrator of the account.'
  if (cause?.code !== 'disabled') return 'The sign-in was not completed. Start it again.'
  return 'The sign-in was not completed: the user is disabled. Ask an administrator of this service.'
}
