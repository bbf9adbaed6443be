import { Code, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Instant } from '../../parts/time.tsx'

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
      <Snippet app={app} />
    </Stack>
  )
}

function Snippet({ app }: { app: App }) {
  const { t } = useTranslation()
  const {
    client_id: id,
    type,
    redirect_uris: [redirect = 'http://127.0.0.1:4711/callback'],
  } = app
  const isPublic = type === 'public'
  const lines = [
    "import * as client from 'openid-client'",
    '',
    `const config = await client.discovery(new URL('${location.origin}'), '${id}'${isPublic ? '' : ', process.env.SIGNALBOX_CLIENT_SECRET'})`,
    'const verifier = client.randomPKCECodeVerifier()',
    'const url = client.buildAuthorizationUrl(config, {',
    `  redirect_uri: '${redirect}',`,
    `  scope: '${app.scopes.join(' ')}',`,
    '  code_challenge: await client.calculatePKCECodeChallenge(verifier),',
    "  code_challenge_method: 'S256',",
    '})',
  ]
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('apps.snippet')}
      </Title>
      <Text size="sm">{t('apps.snippet-text')}</Text>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard (axe scrollable-region-focusable) */}
      <section className="scroll" tabIndex={0} aria-label={t('apps.snippet')}>
        <Code block>{lines.join('\n')}</Code>
      </section>
    </Stack>
  )
}
