import type { ParseKeys } from 'i18next'
import type { ComponentType } from 'react'
import { useTranslation } from 'react-i18next'
import { useAccess } from '../frame/session.tsx'
import { Page } from './page.tsx'
import { NoPermission } from './problem.tsx'

/** A screen that needs a permission: without it, a direct link shows which one is missing. `titleKey` names its text. */
export function guardScreen(permission: string, titleKey: ParseKeys, Screen: ComponentType): ComponentType {
  return function Guarded() {
    const { t } = useTranslation()
    const { may } = useAccess()
    if (may(permission)) return <Screen />
    return (
      <Page title={t(titleKey)}>
        <NoPermission permission={permission} />
      </Page>
    )
  }
}
