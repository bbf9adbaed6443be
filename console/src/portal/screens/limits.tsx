import { Paper, Progress, SimpleGrid, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Loaded } from '../../parts/loaded.tsx'
import { numberFormat } from '../../parts/words/formats.ts'
import { usePortalSession } from '../portal-session.ts'
import { Screen } from '../screen.tsx'

/** How much the account may have and do, and what it has. */
export function Limits() {
  const { t, i18n } = useTranslation('portal')
  const { account } = usePortalSession()
  const limit = useQuery({
    queryKey: ['limits'],
    queryFn: ({ signal }) => api.identity.accountLimitFindOne({ path: { id: account.document_id }, signal }),
  })
  const number = numberFormat(i18n.language)
  return (
    <Screen title={t('tab.limits')} lead={t('limits.lead')}>
      <Loaded query={limit} height={160}>
        {({ data: row }) => (
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            {(['webhooks', 'subscriptions'] as const).map((name) => (
              <Paper key={name} withBorder p="md">
                <Stack gap="xs">
                  <Text fw={600}>{t(`limits.${name}`)}</Text>
                  <Text size="sm">
                    {t('limits.of', { used: number.format(row.used[name]), limit: number.format(row.limits[name]) })}
                  </Text>
                  <Progress
                    value={row.limits[name] === 0 ? 100 : (row.used[name] / row.limits[name]) * 100}
                    aria-label={t(`limits.${name}`)}
                  />
                </Stack>
              </Paper>
            ))}
            {(['published_per_minute', 'replays_per_minute'] as const).map((name) => (
              <Paper key={name} withBorder p="md">
                <Stack gap="xs">
                  <Text fw={600}>{t(`limits.${name}`)}</Text>
                  <Text size="sm">{t('limits.a-minute', { limit: number.format(row.limits[name]) })}</Text>
                </Stack>
              </Paper>
            ))}
            <Paper withBorder p="md">
              <Stack gap="xs">
                <Text fw={600}>{t('limits.ledger_retention_days')}</Text>
                <Text size="sm">{t('limits.days', { count: row.limits.ledger_retention_days })}</Text>
              </Stack>
            </Paper>
          </SimpleGrid>
        )}
      </Loaded>
    </Screen>
  )
}
