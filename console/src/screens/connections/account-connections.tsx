import { Button, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { List, useRows } from '../../parts/list.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { DueCertificate } from './certificates.tsx'
import type { Connection } from './draft.ts'

/** The connections by which the people of an account sign in at its own provider. */
export function AccountConnections({ account }: { account: string }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const rows = useRows({
    key: ['connections', account],
    load: (page, signal) => api.identity.connectionFindAll({ path: { id: account }, query: page, signal }),
  })
  return (
    <Stack>
      <Group>
        {may('connection:create') && (
          <Button component={Link} to={`/accounts/${account}/sign-in/new`} size="compact-md" variant="default">
            {t('connections.new')}
          </Button>
        )}
        <ApiCall
          operation="identity.connectionFindAll"
          method="GET"
          path={`/api/v3/identity/account/${account}/connection`}
        />
      </Group>
      <List
        caption={t('connections.title')}
        columns={useColumns(account)}
        rows={rows}
        isFiltered={false}
        empty={<Text size="sm">{t('connections.empty')}</Text>}
      />
    </Stack>
  )
}

function useColumns(account: string): Column<Connection>[] {
  const { t } = useTranslation()
  const { may } = useAccess()
  return [
    {
      label: t('connections.name'),
      opens: true,
      cell: ({ document_id, name }) => (
        <TextLink
          to="/accounts/$id/sign-in/$connection"
          params={{ id: account, connection: document_id }}
          size="sm"
          fw={600}
        >
          {name}
        </TextLink>
      ),
    },
    { label: t('connections.kind'), cell: ({ kind }) => t(`connections.kind.${kind}`) },
    {
      label: t('users.state'),
      cell: ({ is_enabled, saml }) => (
        <Stack gap={2} align="flex-start">
          <Status name={is_enabled ? 'active' : 'disabled'} />
          {saml && <DueCertificate certificates={saml.certificates} />}
        </Stack>
      ),
    },
    { label: t('connections.enforced'), cell: ({ is_enforced }) => (is_enforced ? t('form.yes') : t('form.no')) },
    ...(may('connection-domain:find-all')
      ? [
          {
            label: t('connections.domains'),
            cell: ({ document_id }: Connection) => <DomainCounts account={account} connection={document_id} />,
          },
        ]
      : []),
    { label: t('webhooks.updated'), cell: ({ updated_at }) => <Time at={updated_at} /> },
  ]
}

/** Most domains that a connection has. */
const DOMAINS_PAGE = 50

/** How many domains of a connection are proven, and how many are not. An account has few connections. */
function DomainCounts({ account, connection }: { account: string; connection: string }) {
  const { t } = useTranslation()
  const domains = useQuery({
    queryKey: ['connection-domains', connection, 'count'],
    queryFn: ({ signal }) =>
      api.identity.connectionDomainFindAll({
        path: { id: account, connection },
        query: { page_size: DOMAINS_PAGE },
        signal,
      }),
  })
  if (!domains.data) return <>–</>
  const rows = domains.data.data
  const proven = rows.filter(({ verified_at }) => verified_at !== null).length
  return <>{t('connections.domain-counts', { proven, pending: rows.length - proven })}</>
}
