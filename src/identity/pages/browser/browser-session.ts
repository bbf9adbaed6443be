import type { SessionId, UserId } from '../../../base/id.ts'
import { chooseRequestTexts, type LanguageHeaders } from '../../../base/language/request-language.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { Random } from '../../../base/random.ts'
import type { AnswerCookie } from '../../../http/route/outcome.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import { REFRESH_LIFETIME_MS } from '../../session/session.ts'
import type { BrowserCookies } from './browser-cookie.ts'
import type { BrowserKeys, BrowserSignIn } from './browser-key.ts'

/** Dependencies of the browser session. */
export interface BrowserDeps {
  random: Random
  cookies: BrowserCookies
  browserKeys: BrowserKeys
  /** The caller of an `Authorization` header; undefined when it is not valid. */
  authenticate: (authorization: string) => Promise<Caller | undefined>
}

/** A user who is signed in. */
export interface SignedInUser {
  userId: UserId
  sessionId: SessionId
  caller: Caller
}

/** The visitor of a page. */
export interface Visitor {
  /** The user of a valid session cookie. */
  user: SignedInUser | undefined
  refreshToken: string | undefined
  /** Whether to refresh: there is a refresh token, no valid session, and no refresh was tried just now. */
  isRefreshable: boolean
  browserId: string
  /** The id that the browser sent; undefined for a new browser. */
  knownBrowserId: string | undefined
  texts: Texts
}

const BROWSER_ID_BYTES = 32

function createBrowserId(random: Random): string {
  return random.bytes(BROWSER_ID_BYTES).toString('base64url')
}

/** Reads the headers of a request. The session cookie counts only here: the API takes bearer tokens alone. */
export async function findVisitor(
  { cookies, browserKeys, random, authenticate }: BrowserDeps,
  headers: LanguageHeaders,
): Promise<Visitor> {
  const values = cookies.read(typeof headers.cookie === 'string' ? headers.cookie : undefined)
  const caller = values.session === undefined ? undefined : await authenticate(`Bearer ${values.session}`)
  const { sessionId = null, userId, clientId } = caller ?? {}
  // An API key in the cookie is not a session, and the session of an app is not a user at a browser.
  const user = caller && userId && sessionId && clientId === null ? { userId, sessionId, caller } : undefined
  const known = values.browser
  const refreshToken =
    known !== undefined && values.refresh !== undefined
      ? browserKeys.openRefreshToken(values.refresh, known)
      : undefined
  return {
    user,
    refreshToken,
    isRefreshable: !user && refreshToken !== undefined && !values.isRefreshed,
    browserId: known ?? createBrowserId(random),
    knownBrowserId: known,
    texts: chooseRequestTexts(headers),
  }
}

/** The tokens of a session that the browser keeps. */
export interface KeptTokens {
  jwt: string
  expiresInSeconds: number
  refreshToken: string
}

/** The cookies of a new session (docs/contract/pages.md#cookies), with a new id: forms from before are not valid. */
export function signInBrowser(
  deps: Omit<BrowserDeps, 'authenticate'>,
  tokens: KeptTokens,
  signIn: BrowserSignIn,
): AnswerCookie[] {
  return keepTokens(deps, tokens, deps.browserKeys.createKnownBrowserId(signIn))
}

/** The cookies of a refreshed session. The browser keeps its id, and with it the forms that are open in other tabs. */
export function refreshBrowser(
  deps: Omit<BrowserDeps, 'authenticate'>,
  tokens: KeptTokens,
  browserId: string,
): AnswerCookie[] {
  return [...keepTokens(deps, tokens, browserId), deps.cookies.markRefreshed()]
}

function keepTokens(
  { cookies, browserKeys }: Omit<BrowserDeps, 'authenticate'>,
  tokens: KeptTokens,
  browserId: string,
): AnswerCookie[] {
  return cookies.signIn({
    jwt: tokens.jwt,
    jwtSeconds: tokens.expiresInSeconds,
    refresh: browserKeys.sealRefreshToken(tokens.refreshToken, browserId),
    refreshSeconds: REFRESH_LIFETIME_MS / 1000,
    browser: browserId,
  })
}
