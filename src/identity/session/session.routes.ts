import { Problem } from '../../http/problem/problem.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { type RefreshDeps, refreshSession } from './refresh.ts'
import {
  RefreshBody,
  RefreshedTokens,
  RevokeBody,
  SessionRow,
  SessionsRevoked,
  toRefreshedTokens,
  toSessionRow,
} from './session.schema.ts'
import { describeSession, type SessionDeps, signOut } from './session.ts'

/** The value of a header that was sent exactly once. */
export function readHeader(headers: Record<string, string | string[] | undefined>, name: string): string | null {
  const value = headers[name]
  return typeof value === 'string' ? value : null
}

/** Answers with tokens must not be cached (RFC 6749 section 5.1). */
export const NO_STORE = { 'cache-control': 'no-store' }

/** Refresh, sign-out and "who am I" (docs/contract/sessions.md#refresh-tokens). */
export const sessionRoutes: Routes<RefreshDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/session/refresh',
      resource: 'session',
      action: 'refresh',
      accountScope: 'none',
      access: 'public',
      strictRateLimit: 'with-operation',
      summary: 'Exchange a refresh token for a new session JWT',
      description:
        'The refresh token rotates: it is valid once, and the answer holds the next one. The same client may repeat the request for 10 seconds and gets the same next token. Any other use of a spent refresh token revokes the whole session.',
      body: RefreshBody,
      data: RefreshedTokens,
      problems: ['refresh_failed'],
    },
    async (deps: RefreshDeps, { db, body, address, headers, now }) => {
      const origin = { address, userAgent: readHeader(headers, 'user-agent') }
      const result = await refreshSession(deps, db, { refreshToken: body.refresh_token, origin, now })
      const { session } = result
      const actor = { userId: session?.userId ?? null, sessionId: session?.id ?? null, account: null }
      if (result.kind === 'refused')
        return {
          kind: 'refusal',
          problem: new Problem(
            'refresh_failed',
            'The refresh token is unknown, used, expired or revoked. Sign in again.',
            {
              reason: result.reason,
              headers: { 'www-authenticate': 'Bearer' },
            },
          ),
          target: session?.id ?? null,
          actor,
        }
      return {
        data: toRefreshedTokens(result),
        message: 'Session refreshed.',
        headers: NO_STORE,
        // A repeat changes nothing: it has an audit entry and no event.
        ...(result.isRepeat ? { audit: { is_repeat: true } } : { changed: [{ id: result.session.id, account: null }] }),
        actor,
      }
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/session/revoke',
      resource: 'session',
      action: 'revoke',
      accountScope: 'none',
      access: 'caller',
      summary: 'Sign out',
      description:
        "Revokes the session of the token and the sessions opened from it, in every process at once. With `all`, revokes every session of the user, ends its apps unless `keep_apps` is true, and revokes its API keys unless `keep_api_keys` is true; with `refresh_token`, the caller's session that it belongs to.",
      body: RevokeBody,
      data: SessionsRevoked,
    },
    async (_deps: SessionDeps, { db, body, caller, now }) => {
      const ended = await signOut(db, {
        caller,
        all: body?.all ?? false,
        family: body?.family ?? false,
        refreshToken: body?.refresh_token,
        keepApps: body?.keep_apps,
        keepApiKeys: body?.keep_api_keys,
        now,
      })
      return {
        data: { revoked: ended.length },
        message: 'Signed out.',
        changed: ended.map((id) => ({ id, account: null })),
      }
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/auth/session',
      resource: 'session',
      action: 'find-one',
      accountScope: 'none',
      access: 'caller',
      summary: 'Read the caller of the token and its permissions',
      data: SessionRow,
      problems: ['not_found'],
    },
    async (_deps: SessionDeps, { db, caller }) => ({
      data: toSessionRow(await describeSession(db, caller), caller),
      message: 'Session.',
      changed: [{ id: caller.sessionId, account: null }],
      headers: NO_STORE,
    }),
  ),
]
