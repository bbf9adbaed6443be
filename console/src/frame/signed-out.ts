import { useSyncExternalStore } from 'react'
import { leaveForSignIn } from './api.ts'
import { buildListeners } from './listeners.ts'

/** The path at which something was typed or chosen last. */
let typedAt: string | undefined

/** Whether the session has ended while there was something to lose. */
let isAsked = false
const listeners = buildListeners()

/** Notes where something is typed or chosen: a page that is left for a sign-in would lose it. */
export function watchTyping(page: Document): void {
  const note = () => {
    typedAt = location.pathname
  }
  page.addEventListener('input', note, { capture: true, passive: true })
  page.addEventListener(
    'click',
    ({ target }) => target instanceof Element && target.closest('[role="option"]') && note(),
  )
}

/** Whether something was typed or chosen at the present path. */
export const hasTyped = (): boolean => typedAt === location.pathname

/** Shows or hides the question to sign in beside this page. */
export function askToSignIn(isOpen: boolean): void {
  isAsked = isOpen
  listeners.tell()
}

/** Whether the page asks to sign in beside it. */
export const useIsAskedToSignIn = (): boolean => useSyncExternalStore(listeners.subscribe, () => isAsked)

/** The session has ended: the page goes to the sign-in and comes back, unless that would lose what was typed. */
export function noticeSignedOut(): void {
  if (hasTyped()) askToSignIn(true)
  else leaveForSignIn()
}
