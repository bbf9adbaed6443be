import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { findOwnRequestId } from '../../../http/request/request-id.ts'
import { writeCookie } from '../../../http/route/answer.ts'
import type { AnswerCookie } from '../../../http/route/outcome.ts'
import { findGrantIdOf } from '../../grant/state-id.ts'
import { findBegunState, findRequestState } from '../state/request-state.ts'

/** Actor and request of a revocation. */
export interface RevocationFacts {
  clientId: string | null
  address: string
  requestId: string | null
}

/** Reactions of the service to a revocation at the provider. */
export interface ProviderRevocations {
  /** Ends the session of a browser that signed out at a client's request. Returns the cookies that remove it. */
  endBrowserSession(session: { userId: string; sessionId: string }, facts: RevocationFacts): Promise<AnswerCookie[]>
  /** Revokes the sessions of a grant after the end of a token family. Never rejects. */
  recordTokenFamilyEnd(
    grantId: string,
    cause: 'revoked' | 'reused' | 'signed out',
    facts: RevocationFacts,
  ): Promise<void>
  /** Records that a client got no token for a user who is disabled or deleted. Never rejects. */
  recordRefusedUser(userId: string, facts: RevocationFacts): Promise<void>
}

interface EndedSession {
  destroyed?: boolean
  accountId?: string
  browserSession?: string
}

/** The caller of a request of the provider. */
export function readRevocationFacts(ctx: KoaContextWithOIDC): RevocationFacts {
  const requestId = ctx.res.getHeader('x-request-id')
  return {
    clientId: ctx.oidc.client?.clientId ?? null,
    address: ctx.ip,
    requestId: typeof requestId === 'string' ? findOwnRequestId(ctx.req, requestId) : null,
  }
}

/** Makes the service follow revocations of the provider. */
export function followRevocations(provider: Provider, revocations: ProviderRevocations): void {
  provider.on('grant.revoked', (ctx, tokenFamilyId) => {
    const { route } = ctx.oidc
    const cause = route === 'revocation' ? 'revoked' : route === 'token' ? 'reused' : 'signed out'
    const revocation = revocations.recordTokenFamilyEnd(findGrantIdOf(tokenFamilyId), cause, readRevocationFacts(ctx))
    findRequestState(ctx)?.revocations.push(revocation)
  })
}

/** Waits for the reactions of `followRevocations`, before the client gets the answer. */
export async function finishRevocations(revocations: ProviderRevocations, ctx: KoaContextWithOIDC): Promise<void> {
  await Promise.all(findBegunState(ctx)?.revocations ?? [])
  // Only the form of a sign-out destroys the session of the provider.
  const { destroyed, accountId, browserSession } = (ctx.oidc.session ?? {}) as EndedSession
  if (!destroyed || accountId === undefined || browserSession === undefined) return
  const session = { userId: accountId, sessionId: browserSession }
  for (const cookie of await revocations.endBrowserSession(session, readRevocationFacts(ctx)))
    ctx.append('set-cookie', writeCookie(cookie))
}

/** Whether a request has a revocation that `finishRevocations` waits for. */
export const hasRevocations = (ctx: KoaContextWithOIDC): boolean =>
  (findBegunState(ctx)?.revocations.length ?? 0) > 0 || ctx.oidc?.route === 'end_session_confirm'
