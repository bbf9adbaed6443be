import { Button, Code, Group, Paper, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { settings } from '../../frame/settings.ts'
import { useChange } from '../../frame/use-change.ts'
import { useCatalogueStatus } from '../../frame/use-service.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Freshness, readOf } from '../../parts/freshness.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission, ProblemCard } from '../../parts/problem.tsx'
import { type Column, RowTable } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Instant } from '../../parts/time.tsx'

type Report = Schemas['CatalogueStatus']

/** The event catalogue of the database against the code: what is missing, stale or different, and the sync that corrects it. */
export function CatalogueStatusScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const status = useCatalogueStatus()
  const report = status.data?.data
  return (
    <Page
      title={t('catalogue.status')}
      parent={{ label: t('catalogue.title'), to: '/catalogue' }}
      lead={report && <Status name={report.in_sync ? 'in-sync' : 'out-of-sync'} />}
      actions={
        may('webhook:catalogue-status') && (
          <>
            <Freshness {...readOf(status)} />
            <Button
              variant="default"
              size="compact-sm"
              loading={status.isFetching}
              onClick={() => void status.refetch()}
            >
              {t('catalogue.dry-run')}
            </Button>
            {report && may('webhook:catalogue-sync') && <Sync report={report} />}
            <ApiCall operation="webhook.webhookCatalogueStatus" method="GET" path="/api/v3/webhook/catalogue/status" />
          </>
        )
      }
    >
      {!may('webhook:catalogue-status') && <NoPermission permission="webhook:catalogue-status" />}
      {status.isLoading && <Skeleton height={240} />}
      {status.isError && <ProblemCard error={status.error} onRetry={() => void status.refetch()} />}
      {report && <Detail report={report} />}
    </Page>
  )
}

function Detail({ report }: { report: Report }) {
  const { t } = useTranslation()
  const { generated_count, synced_count, last_sync } = report
  return (
    <>
      <Facts
        lines={[
          [t('catalogue.generated'), String(generated_count)],
          [t('catalogue.synced'), String(synced_count)],
          [
            t('catalogue.last-sync'),
            last_sync ? <LastSync key="last" sync={last_sync} /> : t('catalogue.never-synced'),
          ],
          [
            t('catalogue.command'),
            <CopyText key="command" text={`npx signalbox catalogue sync --env ${settings.environment}`} />,
          ],
        ]}
      />
      <Diff report={report} />
      <Stale rows={report.stale} />
    </>
  )
}

function LastSync({ sync }: { sync: NonNullable<Report['last_sync']> }) {
  const { t } = useTranslation()
  return (
    <>
      <Instant at={sync.at} />,{' '}
      {sync.by === null ? (
        t('catalogue.by-deployment')
      ) : (
        <TextLink to="/users/$id" params={{ id: sync.by }} size="sm" className="mono">
          {sync.by}
        </TextLink>
      )}
      , {t('catalogue.wrote', { count: sync.written })}, {t('nav.version', { version: sync.version })}
    </>
  )
}

/** Preview of a sync: rows that are added, and members that change. It removes nothing. */
function Diff({ report }: { report: Report }) {
  const { t } = useTranslation()
  const { missing_internals: missing, differences } = report
  const lines = [
    ...missing.map((name) => ({ key: name, text: `+ ${name}` })),
    ...differences.flatMap(({ internal, member, is, becomes }) => [
      { key: `${internal} ${member} -`, text: `- ${internal} ${member}: ${is ?? 'null'}` },
      { key: `${internal} ${member} +`, text: `+ ${internal} ${member}: ${becomes ?? 'null'}` },
    ]),
  ]
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('catalogue.diff')}
      </Title>
      {lines.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t('catalogue.no-diff')}
        </Text>
      ) : (
        <>
          <Text size="sm">{t('catalogue.diff-text', { missing: missing.length, changed: differences.length })}</Text>
          <Code block className="wrap diff">
            {lines.map(({ key, text }) => (
              <span key={key} data-change={text[0]}>
                {text}
                {'\n'}
              </span>
            ))}
          </Code>
        </>
      )}
    </Stack>
  )
}

function Stale({ rows }: { rows: Report['stale'] }) {
  const { t } = useTranslation()
  const columns: Column<Report['stale'][number]>[] = [
    {
      label: t('deliveries.event'),
      opens: true,
      cell: ({ document_id, internal }) => (
        <TextLink to="/catalogue/$id" params={{ id: document_id }} size="sm">
          {internal}
        </TextLink>
      ),
    },
    { label: t('catalogue.subscribers'), isNumber: true, cell: ({ subscribers }) => subscribers },
    { label: t('catalogue.state'), cell: ({ is_actived }) => <Status name={is_actived ? 'stale' : 'inactive'} /> },
    { label: t('catalogue.action'), cell: (row) => <Deactivate row={row} /> },
  ]
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('catalogue.stale')}
      </Title>
      {rows.length === 0 ? (
        <Paper withBorder p="md">
          <Text size="sm" c="dimmed">
            {t('catalogue.no-stale')}
          </Text>
        </Paper>
      ) : (
        <RowTable caption={t('catalogue.stale')} columns={columns} rows={rows} />
      )}
    </Stack>
  )
}

function Deactivate({ row }: { row: Report['stale'][number] }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [isOpen, { open, close }] = useDisclosure(false)
  const set = (is_actived: boolean) => api.webhook.eventActive({ path: { id: row.document_id }, body: { is_actived } })
  const change = useChange({
    make: () => set(false),
    touches: [['catalogue-status'], ['event-types'], ['dashboard']],
    onDone: close,
    notice: () => ({ text: t('catalogue.deactivated', { event: row.internal }), undo: () => set(true) }),
  })
  if (!row.is_actived || !may('event:active')) return null
  return (
    <>
      <Button variant="default" size="compact-sm" onClick={open}>
        {t('catalogue.deactivate')}
      </Button>
      <ConfirmDialog
        title={t('catalogue.deactivate-title', { event: row.internal })}
        label={t('catalogue.deactivate')}
        isOpen={isOpen}
        onClose={close}
        onConfirm={() => change.mutate(undefined)}
        change={change}
      >
        <Text size="sm">{t('catalogue.deactivate-effect', { count: row.subscribers })}</Text>
      </ConfirmDialog>
    </>
  )
}

function Sync({ report }: { report: Report }) {
  const { t } = useTranslation()
  const [isOpen, { open, close }] = useDisclosure(false)
  const sync = useChange({
    make: () => api.webhook.webhookCatalogueSync({}),
    touches: [['catalogue-status'], ['event-types'], ['dashboard']],
    onDone: close,
  })
  const { missing_internals: missing, differences } = report
  return (
    <>
      <Button size="compact-sm" onClick={open}>
        {t('catalogue.sync')}
      </Button>
      <ConfirmDialog
        title={t('catalogue.sync')}
        label={t('catalogue.sync')}
        isOpen={isOpen}
        onClose={close}
        onConfirm={() => sync.mutate(undefined)}
        change={sync}
      >
        <Group>
          <Text size="sm">{t('catalogue.diff-text', { missing: missing.length, changed: differences.length })}</Text>
          <Text size="sm" c="dimmed">
            {t('catalogue.sync-text')}
          </Text>
        </Group>
      </ConfirmDialog>
    </>
  )
}
