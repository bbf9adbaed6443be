import { Button, Group, NativeSelect, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { ConfirmDialog, SecretDialog } from '../../parts/dialogs.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { withTag } from '../../parts/row-edit.ts'
import { guardSection, Sections } from '../../parts/sections.tsx'
import { ConsentList } from '../consents/consent-list.tsx'
import { AppDecisions } from './app-decisions.tsx'
import { AppEndpoints } from './app-endpoints.tsx'
import { TargetLog } from './app-log.tsx'
import { AppSecrets } from './app-secrets.tsx'
import { AppSettings } from './app-settings.tsx'
import { ConsentPreview } from './consent-preview.tsx'

type App = Schemas['OauthClient']

/** How long the old secret may go on, s. */
const OVERLAPS = [0, 3_600, 86_400] as const

/** One app: what it may ask for, where it is sent back to, and its secret. */
export function AppScreen() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/apps/$id' })
  const app = useQuery({
    queryKey: ['app', id],
    queryFn: ({ signal }) => withTag(api.oauth.oauthClientFindOne({ path: { id }, signal })),
  })
  const row = app.data?.data
  return (
    <Page
      title={row?.name ?? t('apps.one')}
      parent={{ label: t('apps.title'), to: '/apps' }}
      actions={row && <Actions app={row} />}
    >
      <Loaded query={app} height={200}>
        {({ data }) => <AppSections app={data} />}
      </Loaded>
    </Page>
  )
}

function AppSections({ app }: { app: App }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  return (
    <Sections
      sections={[
        { name: 'overview', label: t('apps.tab.overview'), content: <AppEndpoints app={app} /> },
        guardSection('oauth-client:update', ['settings', t('webhooks.tab.settings')], <AppSettings app={app} />),
        app.type === 'confidential' &&
          app.token_endpoint_auth_method !== 'private_key_jwt' &&
          guardSection('oauth-client:find-secrets', ['secrets', t('secrets.title')], <AppSecrets app={app} />),
        { name: 'preview', label: t('apps.tab.preview'), content: <ConsentPreview app={app} /> },
        (may('oauth-grant:find-all') || may('oauth-client:find-decisions')) && {
          name: 'consents',
          label: t('consents.title'),
          content: (
            <Stack>
              {may('oauth-grant:find-all') && <ConsentList client={app.document_id} />}
              {may('oauth-client:find-decisions') && <AppDecisions client={app.document_id} />}
            </Stack>
          ),
        },
        guardSection('audit-log:find-all', ['log', t('audit.title')], <TargetLog target={app.document_id} />),
      ]}
    />
  )
}

function Actions({ app }: { app: App }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const navigate = useNavigate()
  const [asked, setAsked] = useState<'rotate' | 'delete' | undefined>()
  const close = () => setAsked(undefined)
  const path = { id: app.document_id }
  const touches = [['app', app.document_id], ['apps']]
  const remove = useChange({
    make: () => api.oauth.oauthClientDelete({ path }),
    touches,
    onDone: () => navigate({ to: '/apps' }),
  })
  return (
    <Group gap="xs">
      {app.type === 'confidential' && may('oauth-client:rotate-secret') && (
        <Button size="compact-md" variant="default" onClick={() => setAsked('rotate')}>
          {t('webhooks.rotate')}
        </Button>
      )}
      {may('oauth-client:delete') && (
        <Button size="compact-md" variant="default" onClick={() => setAsked('delete')}>
          {t('apps.delete')}
        </Button>
      )}
      <ApiCall operation="oauth.oauthClientFindOne" method="GET" path={`/api/v3/oauth/client/${app.document_id}`} />
      <ConfirmDialog
        title={t('apps.delete-title', { name: app.name })}
        label={t('apps.delete')}
        isOpen={asked === 'delete'}
        onClose={close}
        onConfirm={() => remove.mutate(undefined)}
        change={remove}
        typed={app.name}
      >
        <Text size="sm">{t('apps.delete-text')}</Text>
      </ConfirmDialog>
      <RotateSecret app={app} isOpen={asked === 'rotate'} onClose={close} />
    </Group>
  )
}

/** Asks for how long the old secret goes on, adds a new one and shows it once. */
function RotateSecret({ app, isOpen, onClose }: { app: App; isOpen: boolean; onClose: () => void }) {
  const { t } = useTranslation()
  const [overlap, setOverlap] = useState(0)
  const rotate = useChange({
    make: () => {
      const body = { overlap_seconds: overlap }
      return api.oauth.oauthClientRotateSecret({ path: { id: app.document_id }, body })
    },
    touches: [['app', app.document_id], ['apps']],
    onDone: onClose,
  })
  const secret = rotate.data?.data.client_secret
  return (
    <>
      <ConfirmDialog
        title={t('webhooks.rotate-title', { name: app.name })}
        label={t('webhooks.rotate')}
        isOpen={isOpen}
        onClose={onClose}
        onConfirm={() => rotate.mutate(undefined)}
        change={rotate}
      >
        <Stack gap="sm">
          <Text size="sm">{t('apps.rotate-text')}</Text>
          <NativeSelect
            label={t('apps.overlap')}
            value={String(overlap)}
            onChange={({ currentTarget }) => setOverlap(Number(currentTarget.value))}
            data={OVERLAPS.map((overlap) => ({ value: String(overlap), label: t(`apps.overlap.${overlap}`) }))}
          />
        </Stack>
      </ConfirmDialog>
      {secret && (
        <SecretDialog
          title={t('apps.secret')}
          name="SIGNALBOX_CLIENT_SECRET"
          secret={secret}
          onDone={() => rotate.reset()}
        />
      )}
    </>
  )
}
