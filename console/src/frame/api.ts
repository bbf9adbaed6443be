import { createSignalbox, isProblem, type Signalbox } from '@signalbox/client'
import { settings } from './settings.ts'

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

/** Sends a call; one that finds the session expired is sent once more after a refresh. */
async function send(request: Request): Promise<Response> {
  const again = request.clone()
  const answer = await fetch(request)
  if (answer.status !== 401) return answer
  await refreshSession()
  return fetch(again)
}

/** The API, called with the session cookie of this browser and the proof that this page makes the calls. */
export const api: Signalbox = createSignalbox({
  baseUrl: location.origin,
  headers: { 'x-form-token': settings.formToken },
  fetch: send,
})

/** Goes to the page that signs a person in, or asks for a fresh proof, and comes back here. */
export function leaveFor(page: 'sign-in' | 'step-up'): void {
  location.assign(`/auth/${page}?${new URLSearchParams({ next: here() })}`)
}

/** Whether the session has ended, so that nothing but a sign-in helps. */
export const isSignedOut = (error: unknown) => isProblem(error, 'unauthenticated')

/** Whether the API asks who the person is once more before it makes a change. */
export const needsStepUp = (error: unknown) => isProblem(error, 'fresh_factor_required', 'second_factor_required')
