import { createSignalbox, isProblem, type Signalbox } from '@signalbox/client'
import { settings } from './settings.ts'
import { takeEarly } from './start/early-reads.ts'

/** The path of this page, with its query: where a sign-in comes back to. */
const here = () => `${location.pathname}${location.search}`

let refreshing: Promise<void> | undefined

/** Refreshes the session cookie as a page does. What comes of it shows in the next call. */
function refreshSession(): Promise<void> {
  refreshing ??= fetch('/auth/refresh?next=/auth/', { redirect: 'manual' })
    .then(() => undefined)
    .finally(() => {
      refreshing = undefined
    })
  return refreshing
}

/**
 * Sends a call with the session cookie and the proof that this page makes it, unless it is already on its way; once more
 * after a refresh where the session expired.
 */
async function sendWithCookie(request: Request): Promise<Response> {
  if (request.method !== 'GET' && !navigator.onLine) throw new Error('the browser is offline')
  request.headers.set('x-form-token', settings.formToken)
  const again = request.clone()
  const answer = await (takeEarly(request) ?? fetch(request))
  if (answer.status !== 401) return answer
  await refreshSession()
  return fetch(again)
}

let send = sendWithCookie

/** Sends the calls of this page in another way: those of the portal have the token of its session. */
export function sendCallsBy(sendCall: typeof sendWithCookie): void {
  send = sendCall
}

/** The API, called with the session of this page. */
export const api: Signalbox = createSignalbox({ baseUrl: location.origin, fetch: (request) => send(request) })

/** Goes to the page that signs a user in, and comes back here. */
export function leaveForSignIn(): void {
  location.assign(`/auth/sign-in?${new URLSearchParams({ next: here() })}`)
}

/** The address that asks for a fresh proof, and comes back here or goes on at `next`. */
export const toStepUp = (next = here()) => `/auth/step-up?${new URLSearchParams({ next })}`

/** The address that proves the session by the connection of an account, and comes back here or goes on at `next`. */
export const toEntrance = (path: string, next = here()) => `${path}&${new URLSearchParams({ next })}`

/** The path at which this session is proven for the account that a call needed; undefined for any other error. */
export function findEntrance(error: unknown): string | undefined {
  if (!isProblem(error, 'connection_required')) return undefined
  const path = error.problem.errors?.find(({ path }) => path === 'connection')?.message
  return path?.startsWith('/auth/') ? path : undefined
}

/** Whether the session has ended, so that nothing but a sign-in helps. */
export const isSignedOut = (error: unknown) => isProblem(error, 'unauthenticated')

/** Whether the API asks who the user is once more before it makes a change. */
export const needsStepUp = (error: unknown) => isProblem(error, 'fresh_factor_required', 'second_factor_required')
