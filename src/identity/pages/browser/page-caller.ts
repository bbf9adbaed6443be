import type { IncomingHttpHeaders } from 'node:http'
import type { Caller } from '../../../http/shape/caller.ts'
import type { BrowserDeps } from './browser-session.ts'

/** The header by which a page of the service proves that it makes a call (docs/contract/pages.md#calls-of-the-console). */
const FORM_TOKEN_HEADER = 'x-form-token'

/** Dependencies of the callers of pages. */
export interface PageCallerDeps extends Pick<BrowserDeps, 'cookies' | 'browserKeys' | 'authenticate'> {
  baseUrl: () => string
}

/** Finds the user of a session cookie, for a call with the token of a form. Undefined for every other call. */
export function buildPageAuthenticate(
  deps: PageCallerDeps,
): (headers: IncomingHttpHeaders) => Promise<Caller | undefined> {
  return async (headers) => {
    const token = headers[FORM_TOKEN_HEADER]
    if (typeof token !== 'string' || isOfOtherSite(headers, deps.baseUrl())) return undefined
    const { session, browser } = deps.cookies.read(headers.cookie)
    if (session === undefined || browser === undefined || !deps.browserKeys.isFormToken(token, browser))
      return undefined
    const caller = await deps.authenticate(`Bearer ${session}`)
    // An API key in the cookie is not a session, and the session of an app is not a user at a browser.
    return caller?.sessionId && caller.clientId === null ? caller : undefined
  }
}

/** Whether the browser reports a cross-site call. The token's header needs a preflight already: a second check. */
function isOfOtherSite({ origin, 'sec-fetch-site': site }: IncomingHttpHeaders, baseUrl: string): boolean {
  if (site !== undefined) return site !== 'same-origin'
  return origin !== undefined && origin !== new URL(baseUrl).origin
}
