import { Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { AskingButton } from '../../parts/asking-button.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { List, useRows } from '../../parts/list.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Time } from '../../parts/time.tsx'

type Identity = Schemas['UserIdentity']

/** The providers that a user signs in with, each with what disconnects it. */
export function UserIdentities({ user }: { user: string }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const rows = useRows({
    key: ['identities', user],
    load: (page, signal) => api.identity.userIdentityFindAll({ path: { id: user }, query: page, signal }),
  })
  const columns: Column<Identity>[] = [
    { label: t('identities.provider'), cell: ({ provider }) => provider },
    {
      label: t('identities.account'),
      cell: ({ email, is_email_verified }) => (
        <Stack gap={0}>
          <Text size="sm">{email ?? '–'}</Text>
          {email !== null && (
            <Text size="xs" c="dimmed">
              {is_email_verified ? t('identities.verified') : t('users.unverified')}
            </Text>
          )}
        </Stack>
      ),
    },
    { label: t('identities.subject'), cell: ({ subject }) => <CopyText text={subject} isShort /> },
    { label: t('sessions.used'), cell: ({ last_login_at }) => <Time at={last_login_at} /> },
    { label: t('identities.since'), cell: ({ created_at }) => <Time at={created_at} /> },
    {
      label: t('list.actions'),
      cell: (row) =>
        may('user-identity:delete') && (
          <AskingButton
            label={t('identities.unlink')}
            title={t('identities.unlink-title', { provider: row.provider })}
            text={t('identities.unlink-text')}
            make={() => api.identity.userIdentityDelete({ path: { id: user, identity: row.document_id } })}
            touches={[['identities', user]]}
            size="compact-xs"
          />
        ),
    },
  ]
  return (
    <List
      caption={t('users.tab.identities')}
      columns={columns}
      rows={rows}
      isFiltered={false}
      empty={<Text size="sm">{t('identities.empty')}</Text>}
    />
  )
}
