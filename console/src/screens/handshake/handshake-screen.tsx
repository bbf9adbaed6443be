import { Alert, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Icon } from '../../frame/icons.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { type Column, RowTable } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { Instant } from '../../parts/time.tsx'
import { numberFormat } from '../../parts/words/formats.ts'
import { TestHandshake } from './test-handshake.tsx'

type Targets = Schemas['HandshakeTargets']
type Target = Targets['targets'][number] & { document_id: string }
type Outcome = Targets['outcomes'][number] & { document_id: string }

/** The apps on other domains that users are signed in to, and the results of the exchanges. */
export const HandshakeScreen = guardScreen('handshake-target:find-all', 'handshake.title', Handshake)

function Handshake() {
  const { t } = useTranslation()
  const answer = useQuery({
    queryKey: ['handshake-targets'],
    queryFn: ({ signal }) => api.identity.handshakeTargetFindAll({ signal }),
    refetchInterval: 15_000,
  })
  return (
    <Page
      title={t('handshake.title')}
      lead={t('handshake.lead')}
      actions={
        <ApiCall operation="identity.handshakeTargetFindAll" method="GET" path="/api/v3/identity/handshake-target" />
      }
    >
      <Loaded query={answer} height={240}>
        {({ data: found }) => (
          <Stack gap="xl">
            <ClockWarning found={found} />
            <TargetList found={found} />
            <Outcomes found={found} />
            <TestHandshake targets={found.targets} />
            <Settings found={found} />
          </Stack>
        )}
      </Loaded>
    </Page>
  )
}

/** Reasons of refusals that clocks which differ cause. */
const OF_CLOCKS: readonly (string | null)[] = ['expired', 'not_yet_valid']

/** Warns of refused exchanges that clocks which differ would explain. */
function ClockWarning({ found }: { found: Targets }) {
  const { t } = useTranslation()
  const late = found.outcomes.filter(({ reason }) => OF_CLOCKS.includes(reason))
  const count = late.reduce((sum, item) => sum + item.count, 0)
  if (count === 0) return null
  const apps = [...new Set(late.map(({ audience }) => audience ?? '–'))].join(', ')
  return (
    <Alert color="yellow" variant="outline" icon={<Icon name="warn" />} title={t('handshake.clock')}>
      <Text size="sm">{t('handshake.clock-text', { count, apps, seconds: found.tolerance_seconds })}</Text>
    </Alert>
  )
}

function TargetList({ found }: { found: Targets }) {
  const { t, i18n } = useTranslation()
  const number = numberFormat(i18n.language)
  const sum = (origin: string, outcome: 'success' | 'failure') =>
    found.outcomes
      .filter((item) => item.audience === origin && item.outcome === outcome)
      .reduce((total, { count }) => total + count, 0)
  const columns: Column<Target>[] = [
    { label: t('handshake.origin'), cell: ({ origin }) => <CopyText text={origin} /> },
    {
      label: t('handshake.way'),
      cell: ({ needs_handshake }) => (needs_handshake ? t('handshake.by-token') : t('handshake.by-cookie')),
    },
    { label: t('handshake.exchanged'), cell: ({ origin }) => number.format(sum(origin, 'success')), isNumber: true },
    { label: t('handshake.refused'), cell: ({ origin }) => number.format(sum(origin, 'failure')), isNumber: true },
  ]
  const rows = found.targets.map((target) => ({ ...target, document_id: target.origin }))
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('handshake.targets')}
      </Title>
      {rows.length > 0 ? (
        <RowTable caption={t('handshake.targets')} columns={columns} rows={rows} />
      ) : (
        <Text size="sm">{t('handshake.no-target')}</Text>
      )}
      {found.allows_loopback && <Text size="sm">{t('handshake.loopback')}</Text>}
    </Stack>
  )
}

function Outcomes({ found }: { found: Targets }) {
  const { t, i18n } = useTranslation()
  const number = numberFormat(i18n.language)
  const rows = found.outcomes
    .map((outcome) => ({ ...outcome, document_id: `${outcome.audience} ${outcome.outcome} ${outcome.reason}` }))
    .toSorted((a, b) => b.count - a.count)
  const most = Math.max(1, ...rows.map(({ count }) => count))
  const columns: Column<Outcome>[] = [
    { label: t('audit.outcome'), cell: ({ outcome }) => <Status name={outcome} /> },
    { label: t('handshake.reason'), cell: ({ reason }) => (reason === null ? '–' : <Reason reason={reason} />) },
    { label: t('handshake.origin'), cell: ({ audience }) => audience ?? '–' },
    { label: t('handshake.count'), cell: ({ count }) => number.format(count), isNumber: true },
    {
      label: t('handshake.share'),
      cell: ({ count, outcome }) => (
        <svg width="120" height="8" aria-hidden="true">
          <rect width="120" height="8" rx="2" fill="var(--line)" />
          <rect
            width={(120 * count) / most}
            height="8"
            rx="2"
            fill={outcome === 'success' ? 'var(--status-good)' : 'var(--status-bad)'}
          />
        </svg>
      ),
    },
  ]
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('handshake.outcomes')}
      </Title>
      {rows.length > 0 ? (
        <RowTable caption={t('handshake.outcomes')} columns={columns} rows={rows} />
      ) : (
        <Text size="sm">{t('handshake.no-exchange')}</Text>
      )}
      <Text size="sm" c="dimmed">
        {t('providers.since')} <Instant at={found.counted_since} />
      </Text>
    </Stack>
  )
}

/** Reasons that have an explanation of their own. */
const EXPLAINED = [
  'replayed',
  'expired',
  'not_yet_valid',
  'signature',
  'audience',
  'session_expired',
  'session_revoked',
] as const

function Reason({ reason }: { reason: string }) {
  const { t } = useTranslation()
  const known = EXPLAINED.find((plan) => plan === reason)
  return (
    <Stack gap={0}>
      <span className="mono">{reason}</span>
      {known && (
        <Text size="xs" c="dimmed">
          {t(`handshake.why.${known}`)}
        </Text>
      )}
    </Stack>
  )
}

function Settings({ found }: { found: Targets }) {
  const { t } = useTranslation()
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('handshake.settings')}
      </Title>
      <Facts
        lines={[
          [t('handshake.issuer'), <CopyText key="i" text={found.issuer} />],
          [t('handshake.life'), t('handshake.seconds', { count: found.token_seconds })],
          [t('handshake.tolerance'), t('handshake.seconds', { count: found.tolerance_seconds })],
          [t('handshake.cookie'), found.cookie_domain ?? '–'],
          [t('handshake.secrets'), String(found.secret_count)],
          [t('handshake.foreign'), found.accepts_session_jwt ? t('handshake.yes') : t('handshake.no')],
        ]}
      />
    </Stack>
  )
}
