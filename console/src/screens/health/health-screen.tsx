import { Card, Code, Group, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { Page } from '../../parts/page.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'

/** How often the health is read again, ms. */
const REFRESH_MS = 15_000

/** How the parts of the service are. */
export function HealthScreen() {
  const { t } = useTranslation()
  const health = useQuery({
    queryKey: ['health'],
    queryFn: ({ signal }) => api.health.healthFindAll({ signal }),
    refetchInterval: REFRESH_MS,
  })
  const found = health.data?.data
  return (
    <Page
      title={t('health.title')}
      lead={found && <Status name={found.status} />}
      actions={<ApiCall operation="health.healthFindAll" method="GET" path="/api/v3/health" />}
    >
      {health.isLoading && <Skeleton height={200} />}
      {health.isError && <ProblemCard error={health.error} onRetry={() => void health.refetch()} />}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        {found?.components.map(({ component, status, checked_at, details }) => (
          <Card key={component} withBorder>
            <Stack gap="xs">
              <Group justify="space-between">
                <Title order={2} size="h5">
                  {component}
                </Title>
                <Status name={status} />
              </Group>
              <Text size="xs" c="dimmed">
                {t('health.checked')} <Time at={checked_at} />
              </Text>
              <Code block className="wrap">
                {Object.entries(details)
                  .map(
                    ([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`,
                  )
                  .join('\n')}
              </Code>
            </Stack>
          </Card>
        ))}
      </SimpleGrid>
    </Page>
  )
}
