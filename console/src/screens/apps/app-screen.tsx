import { Button, Group, Skeleton, Stack, Text } from '@mantine/core'
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
import { ConfirmDialog, SecretDialog } from '../../parts/dialogs.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Page } from '../../parts/page.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Instant } from '../../parts/time.tsx'

type App = Schemas['OauthClient']

/** One app: what it may ask for, where it is sent back to, and its secret. */
export function AppScreen() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/apps/$id' })
  const app = useQuery({
    queryKey: ['app', id],
    queryFn: ({ signal }) => api.oauth.oauthClientFindOne({ path: { id }, signal }),
  })
  const row = app.data?.data
  return (
    <Page
      title={row?.name ?? t('apps.one')}
      parent={{ label: t('apps.title'), to: '/apps' }}
      actions={row && <Actions app={row} />}
    >
      {app.isPending && <Skeleton height={200} />}
      {app.isError && <ProblemCard error={app.error} onRetry={() => void app.refetch()} />}
      {row && (
        <Facts
          lines={[
            ['client_id', <CopyText key="id" text={row.client_id} />],
            [t('apps.type'), t(`apps.type.${row.type}`)],
            [
              t('apps.redirects'),
              <Stack key="r" gap={0}>
                {row.redirect_uris.map((uri) => (
                  <CopyText key={uri} text={uri} />
                ))}
              </Stack>,
            ],
            [t('apps.scopes'), row.scopes.join(' ')],
            [t('apps.grants'), row.grant_types.join(' ')],
            [t('apps.publisher'), row.publisher ?? '–'],
            [t('apps.issuer'), <CopyText key="i" text={location.origin} />],
            [t('apps.discovery'), <CopyText key="d" text={`${location.origin}/.well-known/openid-configuration`} />],
            [t('deliveries.created'), <Instant key="c" at={row.created_at} />],
          ]}
        />
      )}
    </Page>
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
  const rotate = useChange({
    make: () => api.oauth.oauthClientRotateSecret({ path, body: {} }),
    touches,
    onDone: close,
  })
  const remove = useChange({
    make: () => api.oauth.oauthClientDelete({ path }),
    touches,
    onDone: () => void navigate({ to: '/apps' }),
  })
  const secret = rotate.data?.data.client_secret
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
        title={t('webhooks.rotate')}
        label={t('webhooks.rotate')}
        isOpen={asked === 'rotate'}
        onClose={close}
        onConfirm={() => rotate.mutate(undefined)}
        isRunning={rotate.isPending}
        error={rotate.error}
      >
        <Text size="sm">{t('apps.rotate-text')}</Text>
      </ConfirmDialog>
      <ConfirmDialog
        title={t('apps.delete')}
        label={t('apps.delete')}
        isOpen={asked === 'delete'}
        onClose={close}
        onConfirm={() => remove.mutate(undefined)}
        isRunning={remove.isPending}
        error={remove.error}
        typed={app.name}
      >
        <Text size="sm">{t('apps.delete-text')}</Text>
      </ConfirmDialog>
      {secret && (
        <SecretDialog
          title={t('apps.secret')}
          name="SIGNALBOX_CLIENT_SECRET"
          secret={secret}
          onDone={() => rotate.reset()}
        />
      )}
    </Group>
  )
}
