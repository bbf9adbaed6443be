import { createContext, type ReactNode, useContext, useMemo } from 'react'
import { type Access, buildAccess, type Session } from './access.ts'

const AccessContext = createContext<Access | undefined>(undefined)

/** Gives the screens below it the user. */
export function AccessProvider({ session, children }: { session: Session; children: ReactNode }) {
  const access = useMemo(() => buildAccess(session), [session])
  return <AccessContext value={access}>{children}</AccessContext>
}

/** The user, and what it may do. */
export function useAccess(): Access {
  const access = useContext(AccessContext)
  if (!access) throw new Error('a screen is shown to a user who is signed in')
  return access
}
