import { Skeleton, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { AskingButton } from '../../parts/asking-button.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { type Column, RowTable } from '../../parts/row-table.tsx'
import { Instant, Time } from '../../parts/time.tsx'
import { shortenId } from '../../parts/words/short-id.ts'

type Secret = Schemas['OauthClientSecret']

/** The valid secrets of an app, each with its revocation. */
export function AppSecrets({ app }: { app: Schemas['OauthClient'] }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const path = { id: app.document_id }
  const secrets = useQuery({
    queryKey: ['app', app.document_id, 'secrets'],
    queryFn: ({ signal }) => api.oauth.oauthClientFindSecrets({ path, signal }),
  })
  const columns: Column<Secret>[] = [
    { label: t('secrets.id'), cell: ({ document_id }) => <CopyText text={document_id} isShort /> },
    { label: t('deliveries.created'), cell: ({ created_at }) => <Instant at={created_at} /> },
    {
      label: t('sessions.expires'),
      cell: ({ expires_at }) => (expires_at === null ? t('keys.never') : <Time at={expires_at} />),
    },
    {
      label: t('secrets.used'),
      cell: ({ last_used_at }) => (last_used_at === null ? t('secrets.unused') : <Time at={last_used_at} />),
    },
    {
      label: t('list.actions'),
      cell: (row) =>
        may('oauth-client:revoke-secret') && (
          <AskingButton
            label={t('secrets.revoke')}
            title={t('secrets.revoke-title', { id: shortenId(row.document_id) })}
            text={secrets.data?.data.length === 1 ? t('secrets.revoke-last') : t('secrets.revoke-text')}
            make={() => api.oauth.oauthClientRevokeSecret({ path: { ...path, secret: row.document_id } })}
            touches={[['app', app.document_id]]}
            size="compact-xs"
          />
        ),
    },
  ]
  if (secrets.isPending) return <Skeleton height={120} />
  if (secrets.isError) return <ProblemCard error={secrets.error} onRetry={() => void secrets.refetch()} />
  const rows = secrets.data.data
  return (
    <Stack gap="sm">
      <Text size="sm">{t('secrets.lead')}</Text>
      {rows.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t('secrets.none')}
        </Text>
      ) : (
        <RowTable caption={t('secrets.title')} columns={columns} rows={rows} isBusy={secrets.isFetching} />
      )}
    </Stack>
  )
}
