import type { DataOutcome, RefusalOutcome } from '../../../http/route/outcome.ts'
import type { Static } from '../../../http/shape/schema-type.ts'
import { NO_STORE } from '../../session/session.routes.ts'
import { foldEmail } from '../../user-record/email-key.ts'
import { type LoginPayload, toLoginPayload } from './login-payload.schema.ts'
import type { RefusedSignIn, SignIn } from './sign-in.ts'

/** The outcome of a finished sign-in: its payload, which no cache keeps, and who signed in, for event and audit entry. */
export function buildLoginOutcome(signedIn: SignIn): DataOutcome<Static<typeof LoginPayload>> {
  const { user, issued } = signedIn
  return {
    data: toLoginPayload(signedIn),
    message: 'Signed in.',
    headers: NO_STORE,
    changed: [{ id: issued.sessionId, account: null }],
    actor: { userId: user.id, sessionId: issued.sessionId, account: issued.account?.id ?? null },
  }
}

/** The outcome of a sign-in. A refusal has its user and `email`: those of one address are counted together. */
export function toLoginOutcome(
  result: SignIn | RefusedSignIn,
  email?: string,
): DataOutcome<Static<typeof LoginPayload>> | RefusalOutcome {
  if (!('problem' in result)) return buildLoginOutcome(result)
  const { problem, userId } = result
  const subject = email === undefined ? {} : { subject: foldEmail(email.trim()) }
  return { kind: 'refusal', problem, target: userId, actor: { userId, sessionId: null, account: null }, ...subject }
}
