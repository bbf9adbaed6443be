import { Button, Card, Code, Group, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Icon } from '../../frame/icons.tsx'
import { useHealth, useService } from '../../frame/use-service.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Freshness, readOf } from '../../parts/freshness.tsx'
import { Page } from '../../parts/page.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Status } from '../../parts/status.tsx'
import { Instant, Time } from '../../parts/time.tsx'
import { valueName } from '../../parts/words/value-name.ts'
import { GuideSection } from './guide-section.tsx'
import { GUIDES } from './guides.ts'
import { QueueLanes } from './queue-lanes.tsx'
import { AttemptsOfHour, QueueDepth } from './signals.tsx'

type ComponentName = keyof typeof GUIDES

/** About the heights of the cards of the components, px, so that their places are kept while they load. */
const CARD_HEIGHTS = [434, 434, 290, 290, 418, 418] as const

const isKnown = (name: string): name is ComponentName => name in GUIDES

/** How the parts of the service are, by which rule, and what the service is made of. */
export function HealthScreen() {
  const { t } = useTranslation()
  const [isPaused, setIsPaused] = useState(false)
  const health = useHealth(isPaused)
  const found = health.data?.data
  return (
    <Page
      title={t('health.title')}
      lead={found && <Status name={found.status} />}
      actions={
        <>
          <Freshness {...readOf(health)} />
          <Button
            variant="default"
            size="compact-sm"
            leftSection={<Icon name={isPaused ? 'play' : 'pause'} size={14} />}
            onClick={() => setIsPaused(!isPaused)}
          >
            {isPaused ? t('health.resume') : t('health.pause')}
          </Button>
          <ApiCall operation="health.healthFindAll" method="GET" path="/api/v3/health" />
        </>
      }
    >
      {health.isError && <ProblemCard error={health.error} onRetry={() => void health.refetch()} />}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        {health.isLoading && CARD_HEIGHTS.map((height, place) => <Skeleton key={String(place)} height={height} />)}
        {found?.components.map((component) => (
          <Component key={component.component} {...component} isPaused={isPaused} />
        ))}
        <QueueLanes isPaused={isPaused} />
        <ServiceCard />
      </SimpleGrid>
    </Page>
  )
}

function Component({
  component,
  status,
  checked_at,
  details,
  isPaused,
}: Schemas['HealthComponent'] & { isPaused: boolean }) {
  const { t } = useTranslation()
  const { backlog } = details
  return (
    <Card withBorder>
      <Stack gap="xs">
        <Group justify="space-between">
          <Group gap="xs">
            <Title order={2} size="h5">
              {valueName('health.name', component, t)}
            </Title>
            <Code>{component}</Code>
          </Group>
          <Status name={status} />
        </Group>
        {isKnown(component) && <Text size="sm">{t(`health.rule.${component}`)}</Text>}
        <Text size="xs" c="dimmed">
          {t('health.checked')} <Time at={checked_at} />
        </Text>
        {typeof backlog === 'number' && <QueueDepth depth={{ atMs: Date.parse(checked_at), value: backlog }} />}
        {component === 'webhook-out' && <AttemptsOfHour isPaused={isPaused} />}
        <Code block className="wrap">
          {Object.entries(details)
            .map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
            .join('\n')}
        </Code>
        {isKnown(component) && <GuideSection heading={GUIDES[component]} />}
      </Stack>
    </Card>
  )
}

/** The build and the schema, for those who may know. */
function ServiceCard() {
  const { t } = useTranslation()
  const service = useService()
  if (service.isError) return <ProblemCard error={service.error} onRetry={() => void service.refetch()} />
  const facts = service.data?.data
  if (!facts) return null
  const { schema } = facts
  return (
    <Card withBorder>
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h5">
          {t('health.service')}
        </Title>
        <Status name={schema.pending.length === 0 ? 'operational' : 'degraded'} />
      </Group>
      <Facts
        lines={[
          [t('health.version'), facts.version],
          ['Node', facts.node],
          [t('health.started'), <Instant key="started" at={facts.started_at} />],
          [t('health.migrations'), t('health.migrations-ran', { count: schema.applied, latest: schema.latest ?? '–' })],
          [t('health.migrated'), <Instant key="migrated" at={schema.latest_at} />],
          schema.pending.length === 0 ? undefined : [t('health.pending'), schema.pending.join(', ')],
          schema.ahead.length === 0 ? undefined : [t('health.ahead'), schema.ahead.join(', ')],
        ]}
      />
    </Card>
  )
}
