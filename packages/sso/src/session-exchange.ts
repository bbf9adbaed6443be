import { readSessionToken, type SessionToken } from './claims.ts'
import type { Settings, SsoFailure } from './settings.ts'

/** The result of an exchange. */
export type ExchangeResult =
  | { readonly ok: true; readonly session: SessionToken }
  | { readonly ok: false; readonly reason: SsoFailure; readonly status?: number; readonly error?: unknown }

/** Headers that tell the service about the visitor. */
function describeVisitor(settings: Settings, request: Request): Record<string, string> {
  const address = settings.clientAddress(request)
  const userAgent = request.headers.get('user-agent')
  return {
    ...(address !== undefined && { 'x-forwarded-for': address }),
    ...(userAgent !== null && { 'user-agent': userAgent }),
  }
}

/** Posts JSON to the service. Follows no redirect: it could carry the token elsewhere. */
function post(settings: Settings, call: { path: string; headers: Record<string, string>; body: object }) {
  return settings.send(`${settings.service}${call.path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json', ...call.headers },
    body: JSON.stringify(call.body),
    redirect: 'error',
    signal: AbortSignal.timeout(settings.timeoutMs),
  })
}

/** Exchanges a handshake token for a session JWT, server to server. Never throws. */
export async function exchangeToken(settings: Settings, request: Request, token: string): Promise<ExchangeResult> {
  try {
    const headers = { origin: settings.origin, ...describeVisitor(settings, request) }
    const answer = await post(settings, { path: '/api/v3/auth/sso/exchange', headers, body: { token } })
    if (answer.status !== 200) {
      await answer.body?.cancel()
      return { ok: false, reason: 'refused', status: answer.status }
    }
    const body: unknown = await answer.json().catch(() => undefined)
    const session = readSessionToken((body as { jwt?: unknown } | null | undefined)?.jwt)
    return session ? { ok: true, session } : { ok: false, reason: 'answer', status: answer.status }
  } catch (error) {
    return { ok: false, reason: 'network', error }
  }
}

/**
 * Ends the session of a JWT at the service; with `family` also the session that a handshake opened it from, and all of
 * that one's. A session that has ended already counts as ended. False when the service could not be reached. Never throws.
 */
export async function revokeSession(
  settings: Settings,
  request: Request,
  { jwt, family }: { jwt: string; family: boolean },
): Promise<boolean> {
  try {
    const headers = { authorization: `Bearer ${jwt}`, ...describeVisitor(settings, request) }
    const answer = await post(settings, { path: '/api/v3/auth/session/revoke', headers, body: { family } })
    await answer.body?.cancel()
    return answer.ok || answer.status === 401
  } catch {
    return false
  }
}
