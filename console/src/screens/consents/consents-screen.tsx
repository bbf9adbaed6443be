import { useTranslation } from 'react-i18next'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { Page } from '../../parts/page.tsx'
import { ConsentList } from './consent-list.tsx'
import { DecisionList } from './decision-list.tsx'

/** Grants of all users; without the permission for others, those of the user itself. */
export function ConsentsScreen() {
  const { t } = useTranslation()
  const { mayEverywhere } = useAccess()
  return (
    <Page
      title={t('consents.title')}
      lead={mayEverywhere('oauth-grant:find-all') ? t('consents.lead') : t('consents.lead-own')}
      actions={<ApiCall operation="oauth.oauthGrantFindAll" method="GET" path="/api/v3/oauth/grant" />}
    >
      <ConsentList />
      {mayEverywhere('audit-log:find-all') && <DecisionList />}
    </Page>
  )
}
