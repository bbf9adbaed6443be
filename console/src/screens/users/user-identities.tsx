import { Button, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { List, useRows } from '../../parts/list.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Time } from '../../parts/time.tsx'

type Identity = Schemas['UserIdentity']

/** The providers that a user signs in with, each with what disconnects it. */
export function UserIdentities({ user }: { user: string }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [asked, setAsked] = useState<Identity | undefined>()
  const rows = useRows({
    key: ['identities', user],
    load: (page, signal) => api.identity.userIdentityFindAll({ path: { id: user }, query: page, signal }),
  })
  const unlink = useChange({
    make: (identity: string) => api.identity.userIdentityDelete({ path: { id: user, identity } }),
    touches: [['identities', user]],
    onDone: () => setAsked(undefined),
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
          <Button size="compact-xs" variant="default" onClick={() => setAsked(row)}>
            {t('identities.unlink')}
          </Button>
        ),
    },
  ]
  return (
    <>
      <List
        caption={t('users.tab.identities')}
        columns={columns}
        rows={rows}
        isFiltered={false}
        empty={<Text size="sm">{t('identities.empty')}</Text>}
      />
      <ConfirmDialog
        title={t('identities.unlink-title', { provider: asked?.provider ?? '' })}
        label={t('identities.unlink')}
        isOpen={asked !== undefined}
        onClose={() => setAsked(undefined)}
        onConfirm={() => asked && unlink.mutate(asked.document_id)}
        change={unlink}
      >
        <Text size="sm">{t('identities.unlink-text')}</Text>
      </ConfirmDialog>
    </>
  )
}
