import type { RedirectOutcome } from '../../../http/route/route.ts'
import type { Visitor } from '../browser/browser-session.ts'

/** The page of a user who is signed in. */
export const HOME = '/auth/'

/** The path of the form to sign in by mail. */
export const MAIL_LOGIN = '/auth/sign-in/mail'

/** The page of a sign-in by the connection of an account. */
export const ORGANIZATION_LOGIN = '/auth/sign-in/organization'

/** The path of the form to sign up. */
export const SIGN_UP = '/auth/sign-up'

/** The redirect after a form, or to a step before it: the browser continues by GET. */
export const redirectTo = (location: string) => ({ kind: 'redirect', status: 303, location }) as const

/** The address that refreshes the session of the browser and then continues at a path of the service. */
export function buildRefreshUrl(next: string): string {
  return `/auth/refresh?${new URLSearchParams({ next })}`
}

/** The address of the sign-in page, with the way on and a message by its name. `again` asks a signed-in user too. */
export function buildSignInUrl({
  redirect_url,
  next,
  notice,
  again,
}: Partial<Record<'redirect_url' | 'next' | 'notice' | 'again', string>> = {}): string {
  return addQuery('/auth/sign-in', { redirect_url, next, notice, again })
}

function addQuery(path: string, given: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams(Object.entries(given).filter((pair): pair is [string, string] => !!pair[1]))
  return query.size === 0 ? path : `${path}?${query}`
}

/** The address of a page that begins a sign-in, with the destination in the fields of its form. */
export function buildFormUrl(path: string, { redirect_url, next }: { redirect_url: string; next: string }): string {
  return addQuery(path, { redirect_url, next })
}

/** The address of a page that begins a sign-in, with the way on. `login` is an open sign-in by mail. */
export function buildGoalUrl(
  path: string,
  { target, next, login }: { target: { url: string } | undefined; next: string | undefined; login?: string },
): string {
  return addQuery(path, { login, redirect_url: target?.url, next })
}

/** The address that continues at an app on another domain by a handshake. */
export function buildContinueUrl(redirectUrl: string): string {
  return `/auth/continue?${new URLSearchParams({ redirect_url: redirectUrl })}`
}

/** The address of the page that asks for a fresh proof and then continues at a path of the service. */
export function buildStepUpUrl(next: string): string {
  return `/auth/step-up?${new URLSearchParams({ next })}`
}

/** The redirect of a visitor without a session: to the refresh, else to the sign-in, and then back. */
export function askToSignIn(visitor: Visitor, next: string): RedirectOutcome {
  return redirectTo(visitor.isRefreshable ? buildRefreshUrl(next) : buildSignInUrl({ next }))
}
