import { stringifySetCookie } from 'cookie'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { AnswerCookie } from '../../http/answer.ts'
import { findGrantIdOf } from './state-id.ts'

/** Who ended something, and by which request. */
export interface EndingFacts {
  clientId: string | null
  address: string
  requestId: string | null
}

/** What the service does when the provider ends something. */
export interface ProviderEndings {
  /** Ends the session of a browser that signed out at a client's request. Returns the cookies that remove it. */
  endBrowserSession(session: { userId: string; sessionId: string }, facts: EndingFacts): Promise<AnswerCookie[]>
  /**
   * Ends the sessions of a grant of which a family of tokens ended: revoked by its client, because a code or token was used
   * twice, or by a sign-out. Never rejects.
   */
  recordFamilyEnd(grantId: string, cause: 'revoked' | 'reused' | 'signed out', facts: EndingFacts): Promise<void>
  /** Records that a client got no token for a person who is disabled or deleted. Never rejects. */
  recordRefusedPerson(userId: string, facts: EndingFacts): Promise<void>
}

interface EndedSession {
  destroyed?: boolean
  accountId?: string
  browserSession?: string
}

/** Who made a request of the provider. */
export function readEndingFacts(ctx: KoaContextWithOIDC): EndingFacts {
  const requestId = ctx.res.getHeader('x-request-id')
  return {
    clientId: ctx.oidc.client?.clientId ?? null,
    address: ctx.ip,
    requestId: typeof requestId === 'string' ? requestId : null,
  }
}

/** Lets the service follow what the provider ends. */
export function followEndings(provider: Provider, endings: ProviderEndings): void {
  provider.use(async (ctx, next) => {
    await next()
    const { oidc } = ctx as KoaContextWithOIDC
    if (oidc?.route !== 'end_session_confirm') return
    const { destroyed, accountId, browserSession } = (oidc.session ?? {}) as EndedSession
    if (!destroyed || accountId === undefined || browserSession === undefined) return
    const session = { userId: accountId, sessionId: browserSession }
    for (const { maxAgeSeconds, ...cookie } of await endings.endBrowserSession(
      session,
      readEndingFacts(ctx as KoaContextWithOIDC),
    ))
      ctx.append(
        'set-cookie',
        stringifySetCookie({ ...cookie, ...(maxAgeSeconds !== undefined && { maxAge: maxAgeSeconds }) }),
      )
  })
  const ended = new WeakMap<object, Promise<void>[]>()
  provider.use(async (ctx, next) => {
    await next()
    // What rests on the family has ended before its client reads the answer.
    await Promise.all(ended.get(ctx) ?? [])
  })
  provider.on('grant.revoked', (ctx, familyId) => {
    const { route } = ctx.oidc
    const cause = route === 'revocation' ? 'revoked' : route === 'token' ? 'reused' : 'signed out'
    const ending = endings.recordFamilyEnd(findGrantIdOf(familyId), cause, readEndingFacts(ctx))
    ended.set(ctx, [...(ended.get(ctx) ?? []), ending])
  })
}
