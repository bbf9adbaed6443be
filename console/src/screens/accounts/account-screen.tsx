import { Button, Group, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { withTag } from '../../parts/row-edit.ts'
import { Sections } from '../../parts/sections.tsx'
import { AccountConnections } from '../connections/account-connections.tsx'
import { AccountEvents, AccountWebhooks } from './account-activity.tsx'
import { RenameAccountForm } from './account-form.tsx'
import { AccountInvitations } from './account-invitations.tsx'
import { AccountLimits } from './account-limits.tsx'
import { AccountMembers } from './account-members.tsx'

/** One account: who belongs to it, what it may have, what happens in it. */
export function AccountScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const { id } = useParams({ from: '/accounts/$id' })
  const account = useQuery({
    queryKey: ['account', id],
    queryFn: ({ signal }) => withTag(api.identity.accountFindOne({ path: { id }, signal })),
  })
  const row = account.data?.data
  return (
    <Page
      title={row?.name ?? t('accounts.one')}
      parent={{ label: t('accounts.title'), to: '/accounts' }}
      lead={<CopyText text={id} />}
      actions={row && <Actions account={row} />}
    >
      <Loaded query={account} height={240}>
        {() => (
          <Sections
            sections={[
              may('account-member:find-all') && {
                name: 'members',
                label: t('accounts.members'),
                content: () => <AccountMembers account={id} />,
              },
              may('account-member:invite') && {
                name: 'invitations',
                label: t('accounts.invitations'),
                content: () => <AccountInvitations account={id} />,
              },
              may('connection:find-all') && {
                name: 'sign-in',
                label: t('connections.title'),
                content: () => <AccountConnections account={id} />,
              },
              may('account-limit:find-one') && {
                name: 'limits',
                label: t('accounts.limits'),
                content: () => <AccountLimits account={id} />,
              },
              may('webhook:find-all') && {
                name: 'webhooks',
                label: t('webhooks.title'),
                content: () => <AccountWebhooks account={id} />,
              },
              may('event-occurrence:find-all') && {
                name: 'events',
                label: t('event.title'),
                content: () => <AccountEvents account={id} />,
              },
            ]}
          />
        )}
      </Loaded>
    </Page>
  )
}

function Actions({ account }: { account: Schemas['Account'] }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const navigate = useNavigate()
  const [asked, setAsked] = useState<'rename' | 'delete' | undefined>()
  const close = () => setAsked(undefined)
  const path = { id: account.document_id }
  const remove = useChange({
    make: () => api.identity.accountDelete({ path }),
    touches: [['accounts']],
    onDone: () => navigate({ to: '/accounts' }),
  })
  return (
    <Group gap="xs">
      {may('account:update') && (
        <Button size="compact-md" variant="default" onClick={() => setAsked('rename')}>
          {t('accounts.rename')}
        </Button>
      )}
      {may('account:delete') && (
        <Button size="compact-md" variant="default" onClick={() => setAsked('delete')}>
          {t('accounts.delete')}
        </Button>
      )}
      <ApiCall operation="identity.accountFindOne" method="GET" path={`/api/v3/identity/account/${path.id}`} />
      <Dialog title={t('accounts.rename')} isOpen={asked === 'rename'} onClose={close}>
        <RenameAccountForm account={account} onDone={close} />
      </Dialog>
      <ConfirmDialog
        title={t('accounts.delete')}
        label={t('accounts.delete')}
        isOpen={asked === 'delete'}
        onClose={close}
        onConfirm={() => remove.mutate(undefined)}
        isRunning={remove.isPending}
        error={remove.error}
        typed={account.name}
      >
        <Text size="sm">{t('accounts.delete-text')}</Text>
      </ConfirmDialog>
    </Group>
  )
}
