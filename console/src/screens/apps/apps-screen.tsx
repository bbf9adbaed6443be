import { Button, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { type Column, List, useRows } from '../../parts/list.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'

/** The apps that people sign in to with this service. */
export function AppsScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const query = { sort: '-created_at' as const }
  const rows = useRows({
    key: ['apps'],
    load: (page, signal) => api.oauth.oauthClientFindAll({ query: { ...query, ...page }, signal }),
  })
  const columns: Column<Schemas['OauthClient']>[] = [
    {
      label: t('apps.name'),
      cell: ({ document_id, name, publisher }) => (
        <Stack gap={0}>
          <TextLink to="/apps/$id" params={{ id: document_id }} size="sm" fw={600}>
            {name}
          </TextLink>
          {publisher !== null && (
            <Text size="xs" c="dimmed">
              {publisher}
            </Text>
          )}
        </Stack>
      ),
    },
    { label: 'client_id', cell: ({ client_id }) => <CopyText text={client_id} isShort /> },
    { label: t('apps.type'), cell: ({ type }) => t(`apps.type.${type}`) },
    {
      label: t('apps.redirects'),
      cell: ({ redirect_uris }) => (
        <Text size="sm" className="wrap">
          {redirect_uris.join(', ') || '–'}
        </Text>
      ),
    },
    { label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
  ]
  if (!may('oauth-client:find-all'))
    return (
      <Page title={t('apps.title')}>
        <NoPermission permission="oauth-client:find-all" />
      </Page>
    )
  const create = may('oauth-client:create') && (
    <Button component={Link} to="/apps/new" size="compact-md">
      {t('apps.new')}
    </Button>
  )
  return (
    <Page
      title={t('apps.title')}
      lead={t('apps.lead')}
      actions={
        <>
          {create}
          <ApiCall operation="oauth.oauthClientFindAll" method="GET" path="/api/v3/oauth/client" query={query} />
        </>
      }
    >
      <List
        caption={t('apps.title')}
        columns={columns}
        rows={rows}
        isFiltered={false}
        empty={
          <Stack align="center">
            <Text>{t('apps.empty')}</Text>
            {create}
          </Stack>
        }
      />
    </Page>
  )
}
