import { useSyncExternalStore } from 'react'
import { hasUnsaved, leaveEntries } from '../frame/unsaved.ts'

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

/** The fragment of the screen that is shown. */
let shown = location.hash

function subscribe(listener: () => void): () => void {
  const show = () => {
    const wanted = location.hash
    if (hasUnsaved()) {
      history.replaceState(null, '', shown || location.pathname)
      void leaveEntries(() => {
        location.hash = wanted
      })
      return
    }
    shown = wanted
    listener()
  }
  window.addEventListener('hashchange', show)
  return () => window.removeEventListener('hashchange', show)
}

/** The screen that is shown, again at each change. */
export function useRoute(): Route {
  return readRoute(useSyncExternalStore(subscribe, () => shown))
}

/** The address of a screen. Pure. */
export const hrefOf = (screen: string, id?: string) => `#/${screen}${id === undefined ? '' : `/${id}`}`

/** Goes to a screen. */
export function goTo(screen: string, id?: string): void {
  location.hash = hrefOf(screen, id)
}
