import { parseCookie } from 'cookie'
import { LANGUAGE_COOKIE } from '../../../base/language/request-language.ts'
import type { AnswerCookie } from '../../../http/route/outcome.ts'

/** The pages are below this path, and so is every use of the refresh cookie. */
const PAGES_PATH = '/auth'

/** Lifetime of the browser's id: that of a session. */
const BROWSER_SECONDS = 90 * 24 * 3600

/** Time after a refresh in which the browser is not sent to refresh again: it did not keep the session cookie. */
const REFRESHED_SECONDS = 10

/** Lifetime of the language of a flow: the maximum lifetime of an authorization. */
const LANGUAGE_SECONDS = 3600

/** The settings of the cookies (docs/contract/pages.md#cookies). */
export interface CookieSettings {
  /** Whether browsers send the cookies over TLS only. */
  isSecure: boolean
  /** Whether the names begin with `__Host-`, which keeps other hosts of the domain from setting them (RFC 6265bis). */
  isHostBound: boolean
  /** `SESSION_COOKIE_DOMAIN`: the session cookie reaches every host of this domain. */
  domain: string | undefined
}

/** Values of these cookies in a request. */
export interface CookieValues {
  session: string | undefined
  refresh: string | undefined
  browser: string | undefined
  isRefreshed: boolean
}

/** The values of a browser that is signed in. */
export interface SignedInValues {
  jwt: string
  jwtSeconds: number
  refresh: string
  refreshSeconds: number
  browser: string
}

/** Reads and writes the cookies of the browser session. */
export interface BrowserCookies {
  read(header: string | undefined): CookieValues
  /** Sets the id of a browser without one. */
  keepBrowser(browser: string): AnswerCookie
  signIn(values: SignedInValues): AnswerCookie[]
  /** Replaces the JWT of the same session. */
  renewSession(values: { jwt: string; expiresInSeconds: number }): AnswerCookie[]
  /** Marks that the session was just refreshed. */
  markRefreshed(): AnswerCookie
  signOut(): AnswerCookie[]
  /** Sets the language that the app of a flow requests; an empty one clears it. */
  keepLanguage(lang: string): AnswerCookie
}

/** Builds the cookies of the settings. */
export function buildBrowserCookies({ isSecure, isHostBound, domain }: CookieSettings): BrowserCookies {
  const prefix = isHostBound ? '__Host-' : ''
  const base = { httpOnly: true, secure: isSecure, sameSite: 'lax' } as const
  const session = {
    ...base,
    name: domain === undefined ? `${prefix}signalbox_session` : 'signalbox_session',
    path: '/',
    ...(domain !== undefined && { domain }),
  }
  // A path other than `/` rules out `__Host-`; the value is bound to the browser's id instead.
  const refresh = { ...base, name: 'signalbox_refresh', path: PAGES_PATH }
  const browser = { ...base, name: `${prefix}signalbox_browser`, path: '/' }
  const refreshed = { ...base, name: 'signalbox_refreshed', path: PAGES_PATH }
  const language = { ...base, name: LANGUAGE_COOKIE, path: '/' }
  const remove = { value: '', maxAgeSeconds: 0 }
  const keepBrowser = (value: string) => ({ ...browser, value, maxAgeSeconds: BROWSER_SECONDS })
  return {
    read: (header) => {
      const values = parseCookie(header ?? '')
      return {
        session: values[session.name] || undefined,
        refresh: values[refresh.name] || undefined,
        browser: readBrowserId(values[browser.name]),
        isRefreshed: values[refreshed.name] === '1',
      }
    },
    keepBrowser,
    signIn: (values) => [
      { ...session, value: values.jwt, maxAgeSeconds: values.jwtSeconds },
      { ...refresh, value: values.refresh, maxAgeSeconds: values.refreshSeconds },
      keepBrowser(values.browser),
    ],
    renewSession: ({ jwt, expiresInSeconds }) => [{ ...session, value: jwt, maxAgeSeconds: expiresInSeconds }],
    markRefreshed: () => ({ ...refreshed, value: '1', maxAgeSeconds: REFRESHED_SECONDS }),
    signOut: () => [
      { ...session, ...remove },
      { ...refresh, ...remove },
    ],
    keepLanguage: (value) => ({ ...language, value, maxAgeSeconds: value === '' ? 0 : LANGUAGE_SECONDS }),
  }
}

/** 32 bytes in base64url; anything else was not made here. */
function readBrowserId(value: string | undefined): string | undefined {
  return value !== undefined && /^[A-Za-z0-9_-]{43}$/.test(value) ? value : undefined
}
