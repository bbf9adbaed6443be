import { Alert, Card, Code, Group, SimpleGrid, Skeleton, Stack, Tabs, Text, Title } from '@mantine/core'
import { isProblem } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { Page } from '../../parts/page.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { TabStrip } from '../../parts/scroll/tab-strip.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'
import { DebugLink } from './debug-link.tsx'
import { ChannelEvents, Messages } from './ledger.tsx'
import { Inspector } from './message-table.tsx'
import { OccupiedChannels } from './occupied-channels.tsx'

/** How often the state of the provider is read again, ms. */
const REFRESH_MS = 15_000

const TABS = ['inspector', 'messages', 'channels', 'events'] as const

/** Realtime: how publishing is, what was published, who listens, and a client to try a channel with. */
export const RealtimeScreen = guardScreen('realtime:inspect', 'nav.realtime', Realtime)

function Realtime() {
  const { t } = useTranslation()
  const { tab, ...rest } = useSearch({ from: '/realtime' })
  const navigate = useNavigate()
  const current = TABS.find((item) => item === tab) ?? 'inspector'
  const choose = (next: string | null) => {
    const search = { ...rest, ...(next && { tab: next }) }
    void navigate({ to: '/realtime', search, replace: true, resetScroll: false })
  }
  return (
    <Page
      title={t('nav.realtime')}
      lead={t('realtime.lead')}
      actions={
        <ApiCall operation="health.healthRealtime" method="GET" path="/api/v3/health/component/integration/realtime" />
      }
    >
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Publishing />
        <ClientSettings />
      </SimpleGrid>
      <Tabs value={current} onChange={choose} keepMounted={false}>
        <TabStrip open={current}>
          {TABS.map((tab) => (
            <Tabs.Tab key={tab} value={tab}>
              {t(`realtime.tab.${tab}`)}
            </Tabs.Tab>
          ))}
        </TabStrip>
        <Tabs.Panel value="inspector" pt="md">
          <Inspector />
        </Tabs.Panel>
        <Tabs.Panel value="messages" pt="md">
          <Messages />
        </Tabs.Panel>
        <Tabs.Panel value="channels" pt="md">
          <OccupiedChannels />
        </Tabs.Panel>
        <Tabs.Panel value="events" pt="md">
          <ChannelEvents />
        </Tabs.Panel>
      </Tabs>
    </Page>
  )
}

/** Details of the component. */
interface Details {
  missing?: string[]
  last_success_at?: string | null
  last_error?: string | null
  last_error_at?: string | null
  last_warning?: number | null
  last_warning_at?: string | null
  backlog?: number
  oldest_pending_s?: number
}

function Publishing() {
  const { t } = useTranslation()
  const health = useQuery({
    queryKey: ['health', 'realtime'],
    queryFn: ({ signal }) => api.health.healthRealtime({ signal }),
    refetchInterval: REFRESH_MS,
  })
  if (health.isPending) return <Skeleton height={220} />
  if (health.isError) return <ProblemCard error={health.error} onRetry={() => void health.refetch()} />
  const { status, checked_at } = health.data.data
  const details = health.data.data.details as Details
  const missing = details.missing ?? []
  return (
    <Card withBorder>
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h5">
          {t('realtime.publishing')}
        </Title>
        <Status name={status} />
      </Group>
      {missing.length > 0 && (
        <Alert color="yellow" variant="outline" title={t('realtime.mode.log-only')} mb="xs">
          <Text size="sm">{t('realtime.missing')}</Text>
          {missing.map((name) => (
            <Code key={name} block className="wrap">
              {name}
            </Code>
          ))}
        </Alert>
      )}
      <Facts
        lines={[
          [t('realtime.checked'), <Time key="checked" at={checked_at} />],
          [t('realtime.success'), <Time key="success" at={details.last_success_at ?? null} />],
          details.last_error
            ? [
                t('realtime.error'),
                <span key="error">
                  {details.last_error} <Time at={details.last_error_at ?? null} />
                </span>,
              ]
            : undefined,
          details.last_warning
            ? [
                t('realtime.warning'),
                <span key="warning">
                  HTTP {details.last_warning} <Time at={details.last_warning_at ?? null} />
                </span>,
              ]
            : undefined,
          [
            t('realtime.backlog'),
            details.backlog
              ? t('realtime.waits', { count: details.backlog, seconds: details.oldest_pending_s ?? 0 })
              : '0',
          ],
        ]}
      />
    </Card>
  )
}

/** Connection settings of clients, and the debug link. */
function ClientSettings() {
  const { t } = useTranslation()
  const config = useQuery({
    queryKey: ['realtime-config'],
    queryFn: ({ signal }) => api.realtime.realtimeConfig({ signal }),
    staleTime: 60_000,
  })
  const found = config.data?.data
  return (
    <Card withBorder>
      <Stack gap="xs">
        <Title order={2} size="h5">
          {t('realtime.client')}
        </Title>
        {config.isPending && <Skeleton height={120} />}
        {config.isError &&
          (isProblem(config.error, 'realtime_unavailable') ? (
            <Text size="sm">{t('realtime.no-client')}</Text>
          ) : (
            <ProblemCard error={config.error} onRetry={() => void config.refetch()} />
          ))}
        {found && (
          <Facts
            lines={[
              [t('realtime.key'), <CopyText key="key" text={found.key} />],
              [t('realtime.cluster'), found.cluster],
              [
                t('realtime.host'),
                <CopyText key="host" text={`${found.force_tls ? 'wss' : 'ws'}://${found.ws_host}:${found.ws_port}`} />,
              ],
            ]}
          />
        )}
        <DebugLink />
      </Stack>
    </Card>
  )
}
