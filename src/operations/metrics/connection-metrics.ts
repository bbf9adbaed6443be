import type { Refusal } from '../../identity/social-login/refusal-problem.ts'
import type { Instruments } from './instruments.ts'

/** The metrics of sign-ins by the connections of accounts, of this process. */
export interface ConnectionMetrics {
  /** Counts a sign-in by a connection that ended; `reason` is null for one that succeeded. */
  countConnectionSignIn(reason: Refusal | null): void
}

/** Every reason of a refusal. Neither a connection nor a value of an answer is a label, so the series are bounded. */
const REASONS = Object.keys({
  ...{ state_missing: true, state_forged: true, state_unknown: true, state_expired: true, state_replayed: true },
  ...{ foreign_browser: true, denied: true, callback_incomplete: true, issuer_mismatch: true, answer_refused: true },
  ...{ code_refused: true, id_token_invalid: true, profile_invalid: true, engine_refused: true, provider_fault: true },
  ...{ own_fault: true, owner_unverified: true, connection_ended: true, email_missing: true, email_unverified: true },
  ...{ email_outside: true, user_outside: true, member_unverified: true, disabled: true, operator: true },
  ...{
    user_elsewhere: true,
    not_member: true,
    other_person: true,
    proof_not_needed: true,
    session_ended: true,
    subject_changed: true,
    jit_off: true,
  },
  ...{ code_unknown: true, code_expired: true, verifier_wrong: true },
} satisfies Record<Refusal, true>)

/** Builds these metrics. */
export function buildConnectionMetrics(metrics: Instruments): ConnectionMetrics {
  const signIns = metrics.counter(
    'connection_sign_ins_total',
    'Sign-ins by connections of accounts that ended in this process, by the reason of their refusal; "none" for a success.',
    ['reason'],
  )
  for (const reason of ['none', ...REASONS]) signIns.inc({ reason }, 0)
  return { countConnectionSignIn: (reason) => signIns.inc({ reason: reason ?? 'none' }) }
}
