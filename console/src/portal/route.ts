import { useSyncExternalStore } from 'react'

/** A screen of the portal, by the fragment of the address: `#/webhooks/<id>`. */
export interface Route {
  /** The first part; empty for the start. */
  screen: string
  /** The second part. */
  id: string | undefined
}

/** Reads a fragment. Pure. */
function readRoute(hash: string): Route {
  const [screen = '', id] = hash.replace(/^#\/?/, '').split('/')
  return { screen, id: id === '' ? undefined : id }
}

function subscribe(listener: () => void): () => void {
  window.addEventListener('hashchange', listener)
  return () => window.removeEventListener('hashchange', listener)
}

/** The screen that is shown, again at each change. */
export function useRoute(): Route {
  return readRoute(useSyncExternalStore(subscribe, () => location.hash))
}

/** The address of a screen. Pure. */
export const hrefOf = (screen: string, id?: string) => `#/${screen}${id === undefined ? '' : `/${id}`}`

/** Goes to a screen. */
export function goTo(screen: string, id?: string): void {
  location.hash = hrefOf(screen, id)
}
