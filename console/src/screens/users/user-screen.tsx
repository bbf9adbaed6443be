import { Code, Group, Stack } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { withTag } from '../../parts/row-edit.ts'
import { guardSection, Sections } from '../../parts/sections.tsx'
import { Status } from '../../parts/status.tsx'
import { Instant } from '../../parts/time.tsx'
import { ConsentList } from '../consents/consent-list.tsx'
import { DecisionList } from '../consents/decision-list.tsx'
import { KeyList } from '../keys/key-list.tsx'
import { SessionList } from '../sessions/session-list.tsx'
import { UserAccess } from './user-access.tsx'
import { UserActions } from './user-actions.tsx'
import { userState } from './user-filters.ts'
import { EditUserForm } from './user-form.tsx'
import { UserIdentities } from './user-identities.tsx'
import { UserProvisioning } from './user-provisioning.tsx'
import { UserSignIns } from './user-sign-ins.tsx'

type User = Schemas['User']

/** One user: who it is, what it may do and why, what it opened, and how its access ends. */
export function UserScreen() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/users/$id' })
  const user = useQuery({
    queryKey: ['user', id],
    queryFn: ({ signal }) => withTag(api.identity.userFindOne({ path: { id }, signal })),
  })
  const row = user.data?.data
  return (
    <Page
      title={row?.name ?? row?.email ?? t('users.one')}
      parent={{ label: t('users.title'), to: '/users' }}
      lead={
        row && (
          <Group gap="xs">
            <Status name={userState(row)} />
            <CopyText text={row.email} />
          </Group>
        )
      }
      actions={row && <UserActions user={row} />}
    >
      <Loaded query={user} height={240}>
        {({ data }) => <UserSections user={data} />}
      </Loaded>
    </Page>
  )
}

function UserSections({ user }: { user: User }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const { document_id: id } = user
  return (
    <Sections
      sections={[
        { name: 'profile', label: t('users.tab.profile'), content: <Profile user={user} /> },
        guardSection('user:find-access', ['access', t('users.tab.access')], <UserAccess user={id} />),
        guardSection('session:find-all', ['sessions', t('sessions.title')], <SessionList user={id} />),
        guardSection('user:find-sign-ins', ['sign-ins', t('users.tab.sign-ins')], <UserSignIns user={id} />),
        guardSection('user-identity:find-all', ['identities', t('users.tab.identities')], <UserIdentities user={id} />),
        guardSection('api-key:find-all', ['keys', t('keys.title')], <KeyList user={id} />),
        guardSection(
          'oauth-grant:find-all',
          ['apps', t('consents.title')],
          <Stack gap="lg">
            <ConsentList user={id} />
            {may('audit-log:find-all') && <DecisionList user={id} />}
          </Stack>,
        ),
        may('provisioning-delivery:find-all') &&
          guardSection(
            'provisioning-target:find-all',
            ['provisioning', t('users.tab.provisioning')],
            <UserProvisioning user={id} />,
          ),
        {
          name: 'raw',
          label: t('users.tab.raw'),
          content: (
            <Code block className="wrap">
              {JSON.stringify(user, null, 2)}
            </Code>
          ),
        },
      ]}
    />
  )
}

function Profile({ user }: { user: User }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  return (
    <Stack gap="lg">
      <Facts
        lines={[
          [t('users.id'), <CopyText key="id" text={user.document_id} />],
          [t('users.last-sign-in'), <Instant key="s" at={user.last_sign_in_at} />],
          [t('users.verified'), <Instant key="v" at={user.email_verified_at} />],
          [t('users.password'), user.has_password ? t('users.has-password') : t('users.no-password')],
          [t('deliveries.created'), <Instant key="c" at={user.created_at} />],
          [t('webhooks.updated'), <Instant key="u" at={user.updated_at} />],
        ]}
      />
      {may('user:update') && <EditUserForm user={user} />}
    </Stack>
  )
}
