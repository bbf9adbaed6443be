import { defineRoute, type Routes } from '../http/route.ts'
import {
  RefreshBody,
  RefreshedTokens,
  RevokeBody,
  SessionRow,
  SessionsRevoked,
  toRefreshedTokens,
  toSessionRow,
} from './session.schema.ts'
import { describeSession, refreshSession, type SessionDeps, signOut } from './session.ts'

/** The header with this name, when it came once. */
export function readHeader(headers: Record<string, string | string[] | undefined>, name: string): string | null {
  const value = headers[name]
  return typeof value === 'string' ? value : null
}

/** Tokens must not stay in a cache (RFC 6749 section 5.1). */
export const NO_STORE = { 'cache-control': 'no-store' }

/** Refresh, sign-out and "who am I" (D21). */
export const sessionRoutes: Routes<SessionDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/session/refresh',
      resource: 'session',
      action: 'refresh',
      accountScope: 'none',
      access: 'public',
      transaction: false,
      strictRateLimit: true,
      summary: 'Exchange a refresh token for a new session JWT',
      description:
        'The refresh token rotates: it serves once, and the answer holds the next one. Presenting a spent one ends the whole session.',
      body: RefreshBody,
      data: RefreshedTokens,
      problems: ['refresh_failed'],
    },
    {
      handle: async (deps: SessionDeps, { db, body, address, headers, requestId, now, emit }) => {
        const refreshed = await refreshSession(deps, db, {
          refreshToken: body.refresh_token,
          origin: { address, userAgent: readHeader(headers, 'user-agent') },
          requestId,
          now,
          emit,
        })
        return {
          data: toRefreshedTokens(refreshed),
          message: 'Session refreshed.',
          headers: NO_STORE,
        }
      },
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
        'Ends the session of the token, at once and everywhere, and those opened from it. With `all` every session of the user, with `refresh_token` the own session that it belongs to.',
      body: RevokeBody,
      data: SessionsRevoked,
    },
    {
      handle: async (_deps: SessionDeps, { db, body, caller, now }) => {
        const ended = await signOut(db, {
          caller,
          all: body?.all ?? false,
          refreshToken: body?.refresh_token,
          now,
        })
        return {
          data: { revoked: ended.length },
          message: 'Signed out.',
          changed: ended.map((id) => ({ id, account: null })),
        }
      },
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
      summary: 'Read whom the token stands for, and what it may do',
      data: SessionRow,
      problems: ['not_found'],
    },
    {
      handle: async (_deps: SessionDeps, { db, caller }) => ({
        data: toSessionRow(await describeSession(db, caller), caller),
        message: 'Session.',
        changed: [{ id: caller.sessionId, account: null }],
        headers: NO_STORE,
      }),
    },
  ),
]
