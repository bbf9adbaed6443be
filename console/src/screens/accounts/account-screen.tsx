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
import { guardSection, Sections } from '../../parts/sections.tsx'
import { AccountConnections } from '../connections/account-connections.tsx'
import { AccountEvents, AccountWebhooks } from './account-activity.tsx'
import { RenameAccountForm } from './account-form.tsx'
import { AccountInvitations } from './account-invitations.tsx'
import { AccountLimits } from './account-limits.tsx'
import { AccountMembers } from './account-members.tsx'

/** One account: who belongs to it, what it may have, what happens in it. */
export function AccountScreen() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/accounts/$id' })
  const account = useQuery({
    queryKey: ['account', id],
    queryFn: ({ signal }) => withTag(api.identity.accountFindOne({ path: { id }, signal })),
  })
  const row = account.data?.data
  const sections = [
    guardSection('account-member:find-all', ['members', t('accounts.members')], <AccountMembers account={id} />),
    guardSection(
      'account-member:invite',
      ['invitations', t('accounts.invitations')],
      <AccountInvitations account={id} />,
    ),
    guardSection('connection:find-all', ['sign-in', t('connections.title')], <AccountConnections account={id} />),
    guardSection('account-limit:find-one', ['limits', t('accounts.limits')], <AccountLimits account={id} />),
    guardSection('webhook:find-all', ['webhooks', t('webhooks.title')], <AccountWebhooks account={id} />),
    guardSection('event-occurrence:find-all', ['events', t('event.title')], <AccountEvents account={id} />),
  ]
  return (
    <Page
      title={row?.name ?? t('accounts.one')}
      parent={{ label: t('accounts.title'), to: '/accounts' }}
      lead={<CopyText text={id} />}
      actions={row && <Actions account={row} />}
    >
      <Loaded query={account} height={240}>
        {() => <Sections sections={sections} />}
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
        title={t('accounts.delete-title', { name: account.name })}
        label={t('accounts.delete')}
        isOpen={asked === 'delete'}
        onClose={close}
        onConfirm={() => remove.mutate(undefined)}
        change={remove}
        typed={account.name}
      >
        <Text size="sm">{t('accounts.delete-text')}</Text>
      </ConfirmDialog>
    </Group>
  )
}
