import { readClaims, readHandshakeUser, readSessionToken } from './claims.ts'
import { readCookie, writeCookie } from './cookie.ts'
import { addError, findIgnored, hasError, type Landing, readLanding } from './landing.ts'
import { readNextPath } from './next-path.ts'
import { buildQuestion, buildQuestionHeaders } from './question.ts'
import { type ExchangeResult, exchangeToken, revokeSession } from './session-exchange.ts'
import { readSettings, type Settings, type SsoOptions } from './settings.ts'
import { chooseLanguage, findLanguage } from './texts.ts'

export type { SsoEvent, SsoFailure, SsoOptions, SsoQuestion } from './settings.ts'

/** Landings within `GUARD_SECONDS` of each other after which a token is not exchanged any more. */
const LANDINGS_LIMIT = 3
const GUARD_SECONDS = 5

/** A target app's side of the handshake, on web-standard requests. The adapters pass it what their framework has. */
export type Sso = {
  /**
   * Answers a request whose URL holds a handshake token; undefined for every other request, which the app handles
   * itself. A visitor with the session of another user is asked first, on a page of its own. Never throws.
   */
  handle(request: Request): Promise<Response | undefined>
  /**
   * Answers a sign-out: a POST from a page of this app. Ends the session everywhere, removes the cookie and redirects to
   * `next`, by default `/`. 405 and 403 for other requests. Never throws.
   */
  signOut(request: Request, next?: string): Promise<Response>
  /** The session JWT in the cookie of a request, for calls of the service; undefined without one, or when it has expired. */
  readToken(request: Request): string | undefined
  /** Whether to send a visitor without a session to the authentication app; false when the last handshake failed. */
  mayStart(request: Request): boolean
  /** The public origin of this app. */
  readonly origin: string
}

/** Builds the handler. Throws a `TypeError` for a wrong option. */
export function createSso(options: SsoOptions): Sso {
  const settings = readSettings(options)
  return {
    origin: settings.origin,
    handle: async (request) => {
      const landing = readLanding(request, isOwnPage(settings, request))
      return landing && answerLanding(settings, request, landing)
    },
    signOut: (request, next = '/') => answerSignOut(settings, request, next),
    readToken: (request) => readHeld(settings, request)?.jwt,
    mayStart: (request) => !hasError(request) && countLandings(settings, request) < LANDINGS_LIMIT,
  }
}

async function answerLanding(settings: Settings, request: Request, landing: Landing): Promise<Response> {
  const ignored = findIgnored(request)
  if (ignored) {
    settings.report({ kind: 'ignored', reason: ignored })
    return new Response(null, { status: ignored === 'prefetch' ? 503 : 403, headers: buildHeaders() })
  }
  const held = readHeld(settings, request)
  if (held && request.method === 'GET' && landing.token) {
    const arriving = readHandshakeUser(landing.token)
    if (arriving !== held.userId) return askUser(settings, request, { landing, from: held.userId, to: arriving })
  }
  const landings = countLandings(settings, request)
  const result = await exchangeLanding(settings, request, { landing, landings })
  if (!result.ok) {
    const { ok: _ok, ...failure } = result
    settings.report({ kind: 'failed', ...failure })
    const path = addError(landing.cleanPath, 'exchange_failed')
    // After the limit the cookie is left to expire, which ends the guard.
    return redirect(settings, path, landings < LANDINGS_LIMIT ? [writeGuard(settings, landings + 1)] : [])
  }
  const { session } = result
  const isOtherUser = held !== undefined && held.userId !== session.userId
  if (isOtherUser) await revokeSession(settings, request, { jwt: held.jwt, family: false })
  settings.report({ kind: 'arrived', userId: session.userId, endedOtherUser: isOtherUser })
  const maxAgeSeconds = Math.max(1, session.expiresAtSeconds - Math.floor(settings.now() / 1000))
  const next = readNextPath(readClaims(landing.token ?? '')?.next)
  return redirect(settings, next ?? landing.cleanPath, [
    writeCookie({ name: settings.cookieName, value: session.jwt, maxAgeSeconds }, settings),
    writeGuard(settings, landings + 1),
  ])
}

/**
 * Asks a visitor with the session of another user before the token is used: a link alone must not swap the user
 * (session fixation by a link of a stranger).
 */
async function askUser(
  settings: Settings,
  request: Request,
  { landing, from, to }: { landing: Landing; from: string; to: string | undefined },
): Promise<Response> {
  settings.report({ kind: 'asked' })
  const { style } = settings.question
  const named = { from: await nameUser(settings, from), to: to && (await nameUser(settings, to)) }
  const view = { ...named, language: findQuestionLanguage(settings, request), style }
  const headers = buildHeaders(await buildQuestionHeaders(view))
  return new Response(buildQuestion(`${settings.origin}${landing.cleanPath}`, view), { headers })
}

/** The language that the app names for a request, else the one that the browser prefers. */
function findQuestionLanguage({ question }: Settings, request: Request): string {
  const preferred = () => chooseLanguage(request.headers.get('accept-language'))
  try {
    const { language } = question
    const tag = typeof language === 'function' ? language(request) : language
    return (tag && findLanguage(tag)) || preferred()
  } catch {
    return preferred()
  }
}

/** The name of a user; undefined where the app knows none, or fails to say it. */
async function nameUser({ question }: Settings, userId: string): Promise<string | undefined> {
  try {
    return (await question.nameUser?.(userId)) || undefined
  } catch {
    return undefined
  }
}

async function exchangeLanding(
  settings: Settings,
  request: Request,
  { landing, landings }: { landing: Landing; landings: number },
): Promise<ExchangeResult> {
  if (landings >= LANDINGS_LIMIT) return { ok: false, reason: 'loop' }
  if (landing.token === undefined) return { ok: false, reason: 'token' }
  return exchangeToken(settings, request, landing.token)
}

async function answerSignOut(settings: Settings, request: Request, next: string): Promise<Response> {
  if (request.method !== 'POST') return new Response(null, { status: 405, headers: buildHeaders({ allow: 'POST' }) })
  if (!isOwnPage(settings, request)) return new Response(null, { status: 403, headers: buildHeaders() })
  const held = readHeld(settings, request)
  const isRevoked = !held || (await revokeSession(settings, request, { jwt: held.jwt, family: true }))
  settings.report({ kind: 'signed_out', isRevoked })
  const path = readNextPath(next) ?? '/'
  const removed = writeCookie({ name: settings.cookieName, value: '', maxAgeSeconds: 0 }, settings)
  return redirect(settings, isRevoked ? path : addError(path, 'sign_out_failed'), [removed])
}

/**
 * Whether a POST comes from a page of this app: by `Sec-Fetch-Site`, or by `Origin` where a browser sends only that. A page
 * with the policy `no-referrer` sends the origin `null`.
 */
function isOwnPage({ origin }: Settings, { headers }: Request): boolean {
  const site = headers.get('sec-fetch-site')
  return site === null ? headers.get('origin') === origin : site === 'same-origin'
}

/** The unexpired session in the cookie of a request. The service decides whether it is genuine. */
function readHeld(settings: Settings, request: Request) {
  const held = readSessionToken(readCookie(request.headers.get('cookie'), settings.cookieName))
  return held && held.expiresAtSeconds * 1000 > settings.now() ? held : undefined
}

/** How often this browser landed within the last seconds. */
function countLandings({ guardName }: Settings, request: Request): number {
  const text = readCookie(request.headers.get('cookie'), guardName)
  return text !== undefined && /^\d$/.test(text) ? Number(text) : 0
}

function writeGuard(settings: Settings, landings: number): string {
  return writeCookie({ name: settings.guardName, value: String(landings), maxAgeSeconds: GUARD_SECONDS }, settings)
}

/** 303, so that the URL with the token is not shown, kept or sent on as a referrer. */
function redirect(settings: Settings, path: string, cookies: readonly string[]): Response {
  // With the origin in front, a path of two slashes names no other host.
  const headers = buildHeaders({ location: `${settings.origin}${path}` })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return new Response(null, { status: 303, headers })
}

function buildHeaders(more: Record<string, string> = {}): Headers {
  return new Headers({
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex',
    ...more,
  })
}
