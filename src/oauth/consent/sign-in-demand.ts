import type { UserId } from '../../base/id.ts'
import type { SessionRecord } from '../../identity/session/session.store.ts'
import { decodeSegment, parseClaims, readClaim } from '../../identity/session/token/compact-jws.ts'
import { isNeededAcr, readAskedClaims } from '../claims/asked-claims.ts'
import type { Interaction } from './interaction.store.ts'
import { isSignedInSince } from './restart.ts'

/** Whether the user must authenticate again: by the request, or for another class, if the sign-in is older than it. */
export function mustSignInAgain(interaction: Interaction, session: SessionRecord): boolean {
  const isAsked = interaction.reasons.some((reason) => reason === 'login_prompt' || reason === 'max_age')
  const isOfOtherClass = !isNeededAcr(interaction.params.claims, session.acr)
  return (isAsked || isOfOtherClass) && !isSignedInSince(interaction, session)
}

/** Whether the request accepts this user: the parameter `claims` or a verified ID token hint may name one. Pure. */
export function isNeededUser({ params }: Interaction, userId: UserId): boolean {
  const hint = params.id_token_hint
  const named = readAskedClaims(params.claims).id_token?.sub?.value
  const hinted = typeof hint === 'string' ? readSubject(hint) : undefined
  return [named, hinted].every((item) => item === undefined || item === userId)
}

/** The subject of a JWT whose signature was verified before. */
function readSubject(token: string): unknown {
  const segment = decodeSegment(token.split('.')[1] ?? '')
  const claims = segment && parseClaims(segment)
  return claims === undefined || typeof claims === 'string' ? null : readClaim(claims, 'sub')
}

/**
 * Sign-in of this browser, as passed to the provider. A user or a class of sign-in other than the request needs fails
 * it (OpenID Connect Core sections 3.1.2.1 and 5.5.1.1): the library would ask the same question without end. Pure.
 */
export function buildLoginAnswer(
  interaction: Interaction,
  userId: UserId,
  { amr, acr, authTime }: SessionRecord,
): Record<string, unknown> {
  if (!isNeededUser(interaction, userId))
    return { error: 'login_required', error_description: 'the request asks for another user' }
  if (!isNeededAcr(interaction.params.claims, acr))
    return {
      error: 'unmet_authentication_requirements',
      error_description: 'the user did not sign in with a class (acr) that the request needs',
    }
  const login = { accountId: userId, ts: Math.floor(authTime.getTime() / 1000), amr, ...(acr !== null && { acr }) }
  const chosen = interaction.prompt === 'select_account' ? { select_account: {} } : {}
  return { ...interaction.lastAnswers, ...chosen, login }
}
