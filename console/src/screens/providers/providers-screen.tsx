import { Card, Code, Group, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { Status } from '../../parts/status.tsx'
import { Instant } from '../../parts/time.tsx'
import { numberFormat } from '../../parts/words/formats.ts'
import { TestSignIn } from './test-sign-in.tsx'

type Provider = Schemas['SignInProvider']

/** The sign-in providers: what is enabled, what is missing, what came of the sign-ins of a day. */
export const ProvidersScreen = guardScreen('sign-in-provider:find-all', 'providers.title', Providers)

function Providers() {
  const { t } = useTranslation()
  const answer = useQuery({
    queryKey: ['providers'],
    queryFn: ({ signal }) => api.identity.signInProviderFindAll({ signal }),
    refetchInterval: 30_000,
  })
  return (
    <Page
      title={t('providers.title')}
      lead={t('providers.lead')}
      actions={<ApiCall operation="identity.signInProviderFindAll" method="GET" path="/api/v3/identity/provider" />}
    >
      <Loaded query={answer} height={240}>
        {({ data: found }) => (
          <Stack gap="lg">
            <SimpleGrid cols={{ base: 1, md: 2, xl: 3 }}>
              {found.providers.map((item) => (
                <ProviderCard key={item.name} provider={item} />
              ))}
            </SimpleGrid>
            <Text size="sm" c="dimmed">
              {t('providers.since')} <Instant at={found.counted_since} />
            </Text>
            <Redirects found={found} />
          </Stack>
        )}
      </Loaded>
    </Page>
  )
}

function ProviderCard({ provider }: { provider: Provider }) {
  const { t, i18n } = useTranslation()
  const { name, label, is_enabled, is_managed, callback_url, missing_settings, failures } = provider
  const number = numberFormat(i18n.language)
  const failed = failures.reduce((sum, { count }) => sum + count, 0)
  const trial = new URL(`/api/v3/auth/login/oauth/${name}`, location.origin)
  trial.searchParams.set('redirect_url', `${location.origin}/auth/`)
  return (
    <Card withBorder component="section" aria-label={label} padding="md">
      <Stack gap="sm" h="100%">
        <Group justify="space-between" wrap="nowrap">
          <Title order={2} size="h4">
            {label}
          </Title>
          <Status name={is_enabled ? 'active' : 'inactive'} />
        </Group>
        {is_enabled ? (
          <>
            <Group gap="xl">
              {(
                [
                  ['starts', provider.starts],
                  ['successes', provider.successes],
                  ['failures', failed],
                ] as const
              ).map(([what, count]) => (
                <div key={what}>
                  <Text size="xs" c="dimmed">
                    {t(`providers.${what}`)}
                  </Text>
                  <Text fw={650} size="lg">
                    {number.format(count)}
                  </Text>
                </div>
              ))}
            </Group>
            {failures.length > 0 && (
              <Text size="xs" c="dimmed" className="wrap">
                {failures.map(({ reason, count }) => `${reason} × ${number.format(count)}`).join(', ')}
              </Text>
            )}
            <div>
              <Text size="xs" c="dimmed">
                {t('providers.callback')}
              </Text>
              <CopyText text={callback_url} />
            </div>
            {is_managed && <Text size="xs">{t('providers.managed')}</Text>}
            <div>
              <Text size="xs" c="dimmed">
                {t('providers.test')}
              </Text>
              <CopyText text={trial.href} />
            </div>
            <TestSignIn provider={provider} url={trial.href} />
          </>
        ) : (
          <div>
            <Text size="sm">{t('providers.missing')}</Text>
            <Stack gap={4} mt={4} align="flex-start">
              {missing_settings.map((setting) => (
                <Code key={setting}>{setting}</Code>
              ))}
            </Stack>
          </div>
        )}
      </Stack>
    </Card>
  )
}

function Redirects({ found }: { found: Schemas['SignInProviders'] }) {
  const { t } = useTranslation()
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('providers.redirects')}
      </Title>
      <Text size="sm">{t('providers.redirects-text')}</Text>
      {found.redirect_allow_list.map((item) => (
        <CopyText key={item} text={item} />
      ))}
      {found.allows_loopback && <Text size="sm">{t('providers.loopback')}</Text>}
      {found.redirect_allow_list.length === 0 && !found.allows_loopback && <Text size="sm">{t('users.no-role')}</Text>}
    </Stack>
  )
}
