import { SegmentedControl, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Snippet } from '../../parts/snippet.tsx'
import { Instant } from '../../parts/time.tsx'
import { buildSnippets } from './snippets.ts'

type App = Schemas['OauthClient']

/** Endpoints of the service for an app, and the first request of a sign-in. */
export function AppEndpoints({ app }: { app: App }) {
  const { t } = useTranslation()
  const at = (path: string) => <CopyText text={`${location.origin}${path}`} />
  return (
    <Stack gap="lg">
      <Facts
        lines={[
          ['client_id', <CopyText key="id" text={app.client_id} />],
          [t('apps.type'), t(`apps.type.${app.type}`)],
          [t('apps.publisher'), app.publisher ?? '–'],
          [t('apps.registration'), t(`apps.registration.${app.registration}`)],
          [t('apps.proof'), app.token_endpoint_auth_method],
          [t('deliveries.created'), <Instant key="c" at={app.created_at} />],
        ]}
      />
      <Title order={2} size="h4">
        {t('apps.endpoints')}
      </Title>
      <Facts
        lines={[
          [t('apps.issuer'), at('')],
          [t('apps.discovery'), at('/.well-known/openid-configuration')],
          ['authorize', at('/api/v3/oauth/authorize')],
          ['token', at('/api/v3/oauth/token')],
          ['userinfo', at('/api/v3/oauth/userinfo')],
          ['JWKS', at('/api/v3/oauth/jwks')],
          ['exchange', at('/api/v3/oauth/exchange')],
        ]}
      />
      <Snippets app={app} />
    </Stack>
  )
}

function Snippets({ app }: { app: App }) {
  const { t } = useTranslation()
  const snippets = buildSnippets(app, location.origin)
  const [chosen, setChosen] = useState('openid-client')
  const shown = snippets.find(({ name }) => name === chosen) ?? snippets[0]
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('apps.snippet')}
      </Title>
      <Text size="sm">{t('apps.snippet-text')}</Text>
      <div>
        <SegmentedControl
          size="xs"
          transitionDuration={0}
          aria-label={t('apps.snippet')}
          value={shown?.name ?? ''}
          onChange={setChosen}
          data={snippets.map(({ name }) => name)}
        />
      </div>
      {shown && <Snippet text={shown.text} label={t('apps.snippet')} />}
    </Stack>
  )
}
