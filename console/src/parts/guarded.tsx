import type { ReactNode } from 'react'
import { useAccess } from '../frame/session.tsx'
import { Page } from './page.tsx'
import { NoPermission } from './problem.tsx'

/** A screen that needs a permission: without it, a direct link shows which one is missing. */
export function Guarded({ permission, title, children }: { permission: string; title: string; children: ReactNode }) {
  const { may } = useAccess()
  if (may(permission)) return children
  return (
    <Page title={title}>
      <NoPermission permission={permission} />
    </Page>
  )
}
