import type { Schemas } from '@signalbox/client'
import { createContext, useContext } from 'react'

/** The open session, which the page gives to its screens. */
export const SessionContext = createContext<Schemas['OpenedPortalSession'] | undefined>(undefined)

/** The session of the portal, for the screens. */
export function usePortalSession(): Schemas['OpenedPortalSession'] {
  const session = useContext(SessionContext)
  if (!session) throw new Error('a screen is shown in a session')
  return session
}
