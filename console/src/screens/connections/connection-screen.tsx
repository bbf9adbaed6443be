import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { withTag } from '../../parts/row-edit.ts'
import { guardSection, Sections } from '../../parts/sections.tsx'
import { Status } from '../../parts/status.tsx'
import { ConnectionActions } from './connection-actions.tsx'
import { ConnectionDomains } from './connection-domains.tsx'
import { ConnectionSettings } from './connection-settings.tsx'
import { ConnectionSetup } from './connection-setup.tsx'

/** One connection of an account: what its provider needs, its domains, its settings. */
export const ConnectionScreen = guardScreen('connection:find-one', 'connections.one', Detail)

function Detail() {
  const { t } = useTranslation()
  const { id, connection } = useParams({ from: '/accounts/$id/sign-in/$connection' })
  const found = useQuery({
    queryKey: ['connection', connection],
    queryFn: ({ signal }) => withTag(api.identity.connectionFindOne({ path: { id, connection }, signal })),
  })
  const row = found.data?.data
  return (
    <Page
      title={row?.name ?? t('connections.one')}
      parent={{ label: t('connections.title'), to: `/accounts/${id}?tab=sign-in` }}
      lead={row && <Status name={row.is_enabled ? 'active' : 'disabled'} />}
      actions={
        row && (
          <>
            <ConnectionActions connection={row} />
            <ApiCall
              operation="identity.connectionFindOne"
              method="GET"
              path={`/api/v3/identity/account/${id}/connection/${connection}`}
            />
          </>
        )
      }
    >
      <Loaded query={found} height={240}>
        {({ data }) => (
          <Sections
            sections={[
              { name: 'setup', label: t('connections.setup'), content: <ConnectionSetup connection={data} /> },
              guardSection(
                'connection-domain:find-all',
                ['domains', t('connections.domains')],
                <ConnectionDomains connection={data} />,
              ),
              guardSection(
                'connection:update',
                ['settings', t('connections.settings')],
                <ConnectionSettings connection={data} />,
              ),
            ]}
          />
        )}
      </Loaded>
    </Page>
  )
}
