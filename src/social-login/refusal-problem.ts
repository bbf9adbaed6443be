import type { EngineRefusal } from '../engine/engine.ts'
import { Problem } from '../http/problem.ts'
import type { LinkRefusal } from './linking.ts'
import type { FlowRefusal } from './social-login.ts'

/** Every reason for which a flow does not end in a session. */
export type Refusal = FlowRefusal | EngineRefusal | LinkRefusal | 'code_unknown' | 'code_expired' | 'verifier_wrong'

/** The reasons that a person can do something about; all others have one text. */
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

/**
 * The problem for a refused sign-in (docs/contract/social-login.md#failures). The reason is in the log and the audit log;
 * the person gets one sentence for all of them, unless there is something to do at the provider.
 */
export function buildRefusal(reason: Refusal, detail: string | null = null): Problem {
  const told = TOLD[reason]
  const logged = { reason: detail === null ? reason : `${reason}: ${detail}` }
  if (told) return new Problem(told[0], told[1], logged)
  return new Problem('social_login_failed', 'The sign-in was not completed. Start it again.', logged)
}

/** The `error` parameter of a deep link: the word of OAuth for a denial, else the code of the problem. */
export function toErrorParameter(reason: Refusal, problem: Problem): string {
  return reason === 'denied' ? 'access_denied' : problem.code
}
