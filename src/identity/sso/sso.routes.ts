import { Problem } from '../../http/problem/problem.ts'
import { defineRoute, type RefusalOutcome, type Routes } from '../../http/route/route.ts'
import { NO_STORE, readHeader } from '../session/session.routes.ts'
import { exchangeHandshake, type RefusedExchange, type SsoDeps } from './exchange.ts'
import { startHandshake } from './handshake.ts'
import { ExchangeBody, ExchangedSession, HandshakeRow, StartHandshakeBody, toHandshakeRow } from './sso.schema.ts'

/** The handshake between apps on different domains (docs/contract/sso.md#handshake). */
export const ssoRoutes: Routes<SsoDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/sso/handshake',
      resource: 'sso',
      action: 'handshake',
      accountScope: 'none',
      access: 'caller',
      strictRateLimit: 'with-operation',
      summary: 'Start a handshake with an app on another domain',
      description:
        "Returns the URL to send the user's browser to. For a target on another domain it holds a handshake token, which works once and for 60 s. Needs a session that a sign-in opened: an API key and a session of a handshake are a 409.",
      body: StartHandshakeBody,
      data: HandshakeRow,
      problems: ['conflict', 'not_found'],
    },
    async (deps: SsoDeps, { db, body, caller, now }) => {
      const started = await startHandshake(deps, db, { caller, targetUrl: body.target_url, next: body.next, now })
      return {
        data: toHandshakeRow(started),
        message: 'Handshake started.',
        headers: NO_STORE,
        changed: [{ id: started.sessionId, account: null }],
        audit: { audience: started.audience, cross_domain: started.isCrossDomain },
      }
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/sso/exchange',
      resource: 'sso',
      action: 'exchange',
      accountScope: 'none',
      access: 'public',
      strictRateLimit: 'with-operation',
      bare: true,
      summary: 'Exchange a handshake token for a session JWT',
      description:
        'For the server of the target app. The token works once. The new session belongs to the user of the token, ends with the session that the handshake was started from, and cannot be refreshed. An `Origin` header, if there is one, must be the origin that the token was minted for. Every failure is the same 401.',
      body: ExchangeBody,
      data: ExchangedSession,
      problems: ['sso_exchange_failed'],
    },
    async (deps: SsoDeps, { db, body, address, headers, now }) => {
      const origin = { address, userAgent: readHeader(headers, 'user-agent') }
      const appOrigin = readHeader(headers, 'origin')
      const result = await exchangeHandshake(deps, db, { token: body.token, appOrigin, origin, now })
      if (result.kind === 'refused') return buildRefusal(result)
      const { issued, parent, handshake } = result
      return {
        data: { jwt: issued.jwt },
        message: 'Signed in.',
        headers: NO_STORE,
        changed: [{ id: issued.sessionId, account: null }],
        audit: { parent: parent.id, audience: handshake.audience },
        actor: { userId: parent.userId, sessionId: issued.sessionId, account: issued.account?.id ?? null },
      }
    },
  ),
]

/** One answer for every reason, which is only in the log and the audit entry. */
function buildRefusal({ reason, handshake }: RefusedExchange): RefusalOutcome {
  const detail = 'The handshake token is not valid. Go back to the app that you came from and try again.'
  const options = { reason, headers: { 'www-authenticate': 'Bearer', ...NO_STORE } }
  return {
    kind: 'refusal',
    problem: new Problem('sso_exchange_failed', detail, options),
    target: handshake?.sessionId ?? null,
    actor: { userId: handshake?.userId ?? null, sessionId: handshake?.sessionId ?? null, account: null },
    ...(handshake && { audit: { audience: handshake.audience } }),
  }
}
