import { Button, Group, List, Paper, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { settings } from '../../frame/settings.ts'
import { SCOPES } from './scopes.ts'

/** Preview of the consent page of the app. Its buttons have no effect. */
export function ConsentPreview({ app }: { app: Schemas['OauthClient'] }) {
  const { t } = useTranslation()
  const hosts = [...new Set(app.redirect_uris.map((uri) => URL.parse(uri)?.host || uri))]
  if (app.first_party) return <Text size="sm">{t('preview.first-party')}</Text>
  return (
    <Stack gap="sm">
      <Text size="sm">{t('preview.lead')}</Text>
      <Paper withBorder p="lg" maw={440} component="section" aria-label={t('apps.tab.preview')}>
        <Stack gap="sm">
          <Title order={2} size="h4">
            {t('preview.ask', { app: app.name, service: settings.service })}
          </Title>
          <Text size="sm" c="dimmed">
            {[app.publisher, hosts.join(', ')].filter(Boolean).join(' · ')}
          </Text>
          <List size="sm" spacing={4}>
            {SCOPES.filter((scope) => app.scopes.includes(scope)).map((scope) => (
              <List.Item key={scope}>{t(`scope.${scope}`)}</List.Item>
            ))}
          </List>
          <Group grow>
            <Button variant="default" disabled>
              {t('preview.deny')}
            </Button>
            <Button disabled>{t('preview.allow')}</Button>
          </Group>
        </Stack>
      </Paper>
    </Stack>
  )
}
