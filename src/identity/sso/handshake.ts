import type { SessionId, UserId } from '../../base/id.ts'
import { invalidField, Problem } from '../../http/problem/problem.ts'
import type { Caller } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { SessionRecord } from '../session/session.store.ts'
import { loadCallerSession, loadSession, SESSION_LIFETIME_MS } from '../session/session.ts'
import type { SsoDeps } from './exchange.ts'
import { encodeNonce, HANDSHAKE_SECONDS, signHandshake } from './handshake-token.ts'
import { readNextPath } from './next-path.ts'
import { isSameSite, readTarget } from './target.ts'

/** URL at which the browser continues. */
export interface StartedHandshake {
  sessionId: SessionId
  audience: string
  /** The URL to send the browser to, with a handshake token when the target is on another domain. */
  redirectUrl: string
  isCrossDomain: boolean
  /** Lifetime of the token from now; null without a token. */
  expiresInSeconds: number | null
}

/** Starts a handshake (docs/contract/sso.md#handshake). Throws 422, and 409 for a key or a handshake's session. */
export async function startHandshake(
  deps: SsoDeps,
  db: Database,
  input: { caller: Caller; targetUrl: string; next: string | undefined; now: Date },
): Promise<StartedHandshake> {
  const { rules } = deps
  const target = readTarget(input.targetUrl, rules)
  if (!target) throw buildTargetRefusal()
  const next = readNextPath(input.next)
  if (input.next !== undefined && next === null) throw buildNextRefusal()
  const session = await loadCallerSession(db, input.caller)
  if (session.parentId !== null || session.client !== null) throw buildRelayRefusal()
  const audience = target.origin
  if (isSameSite(target, rules)) {
    const redirectUrl = next === null ? target.href : `${audience}${next}`
    return { sessionId: session.id, audience, redirectUrl, isCrossDomain: false, expiresInSeconds: null }
  }
  const { redirectUrl, expiresAt } = buildLanding(deps, { session, target, next, now: input.now })
  const expiresInSeconds = Math.floor((expiresAt.getTime() - input.now.getTime()) / 1000)
  return { sessionId: session.id, audience, redirectUrl, isCrossDomain: true, expiresInSeconds }
}

/** Opens a target on another site by handshake (docs/contract/social-login.md#web-continuation); else undefined. */
export type OpenTarget = (
  db: Database,
  input: {
    userId: UserId
    sessionId: SessionId
    /** Whether this transaction opens the session: then it is written with its last statement, and cannot be read. */
    isNew: boolean
    targetUrl: string
    now: Date
  },
) => Promise<string | undefined>

/** Whether a URL is a target on another domain, which a browser reaches by handshake. Pure. */
export function needsHandshake(targetUrl: string, rules: SsoDeps['rules']): boolean {
  const target = readTarget(targetUrl, rules)
  return target !== null && !isSameSite(target, rules)
}

/** Builds `OpenTarget`, for a browser that continues after a sign-in. */
export function buildOpenTarget(deps: Pick<SsoDeps, 'rules' | 'random'>): OpenTarget {
  return async (db, { userId, sessionId, isNew, targetUrl, now }) => {
    const target = readTarget(targetUrl, deps.rules)
    if (!target || isSameSite(target, deps.rules)) return undefined
    const opened = {
      id: sessionId,
      userId,
      parentId: null,
      client: null,
      expiresAt: new Date(now.getTime() + SESSION_LIFETIME_MS),
    }
    const session = isNew ? opened : await loadSession(db, sessionId)
    if (session.parentId !== null || session.client !== null) return undefined
    return buildLanding(deps, { session, target, next: null, now }).redirectUrl
  }
}

/** The target URL with a new handshake token, which expires with the session at the latest. */
function buildLanding(
  { rules, random }: Pick<SsoDeps, 'rules' | 'random'>,
  {
    session,
    target,
    next,
    now,
  }: { session: Pick<SessionRecord, 'id' | 'userId' | 'expiresAt'>; target: URL; next: string | null; now: Date },
): { redirectUrl: string; expiresAt: Date } {
  const issuedAt = new Date(Math.floor(now.getTime() / 1000) * 1000)
  const expiresAt = new Date(Math.min(issuedAt.getTime() + HANDSHAKE_SECONDS * 1000, session.expiresAt.getTime()))
  const { userId, id: sessionId } = session
  const about = { userId, sessionId, audience: target.origin, next, issuedAt, expiresAt }
  const url = new URL(target)
  url.searchParams.delete('sso_error')
  url.searchParams.set('sso_token', signHandshake(rules, { ...about, nonce: encodeNonce(random) }))
  return { redirectUrl: url.href, expiresAt }
}

function buildTargetRefusal(): Problem {
  const rule = 'must be an http(s) URL whose origin is a target. An operator adds origins to SSO_TARGETS.'
  return invalidField('target_url', 'sso_target_not_allowed', rule)
}

function buildNextRefusal(): Problem {
  const rule = 'must be a path of the target app that begins with one slash, such as /orders?page=2.'
  return invalidField('next', 'next_not_a_path', rule)
}

function buildRelayRefusal(): Problem {
  const detail = 'A handshake opened this session. Start the next one in the app where the user signed in.'
  return new Problem('conflict', detail, { reason: 'session_of_handshake' })
}
