import { Button, Group, Paper, SegmentedControl, Skeleton, Stack, Text } from '@mantine/core'
import { Outlet, useMatch, useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { changePreferences, usePreferences } from '../../frame/preferences.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { ColumnChooser, useHidden } from '../../parts/column-chooser.tsx'
import { ExportMenu } from '../../parts/export-menu.tsx'
import { Freshness } from '../../parts/freshness.tsx'
import { NoMatch } from '../../parts/no-match.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission, ProblemCard } from '../../parts/problem.tsx'
import { useIsBeside } from './beside.ts'
import { BulkReplay } from './bulk-replay.tsx'
import { FilterBar } from './filter-bar.tsx'
import { useFilterNames } from './filter-names.ts'
import { type DeliveryFilters, toApiFilters } from './filters.ts'
import { useLedgerColumns } from './ledger-columns.tsx'
import { LedgerTable } from './ledger-table.tsx'
import { SavedViews } from './saved-views.tsx'
import { LedgerOrder, useLedger } from './use-ledger.ts'
import { useWebhookNames } from './use-webhook-names.ts'

/** The ledger: every delivery by the filters of the URL, the newest first unless asked otherwise. */
export function DeliveriesScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const filters = useSearch({ from: '/deliveries' })
  const navigate = useNavigate({ from: '/deliveries' })
  const opened = useMatch({ from: '/deliveries/$id', shouldThrow: false })
  const isPage = !useIsBeside() && opened !== undefined
  const choose = (next: DeliveryFilters) => void navigate({ to: '/deliveries', search: next, replace: true })
  // Counted back from when the filters were chosen, so that the pages of one list agree.
  const apiFilters = useMemo(() => toApiFilters(filters, Date.now()), [filters])
  const sort: 'created_at' | '-created_at' = filters.sort === 'oldest' ? 'created_at' : '-created_at'
  const query = { sort, ...(apiFilters.length > 0 && { filters: apiFilters }) }
  if (isPage) return <Outlet />
  if (!may('webhook-dispatch:find-all'))
    return (
      <Page title={t('deliveries.title')}>
        <NoPermission permission="webhook-dispatch:find-all" />
      </Page>
    )
  return (
    <Page
      title={t('deliveries.title')}
      lead={t('deliveries.lead')}
      actions={
        <>
          <SavedViews filters={filters} onChoose={choose} />
          {may('webhook-dispatch:replay') && <BulkReplay filters={apiFilters} />}
          {may('webhook-dispatch:export') && <LedgerExport query={query} />}
          <ApiCall
            operation="webhook.webhookDispatchFindAll"
            method="GET"
            path="/api/v3/webhook/dispatch"
            query={query}
          />
        </>
      }
    >
      <FilterBar key={JSON.stringify(filters)} filters={filters} onChoose={choose} />
      <Ledger key={JSON.stringify(query)} query={query} isFiltered={apiFilters.length > 0} onClear={() => choose({})} />
    </Page>
  )
}

/** Saves the deliveries of the filters as a file. */
function LedgerExport({ query }: { query: LedgerProps['query'] }) {
  const { t } = useTranslation()
  return (
    <ExportMenu
      label={t('export.title')}
      name="deliveries"
      note={t('export.limit', { limit: 50_000 })}
      load={(format) => api.webhook.webhookDispatchExport({ query: { ...query, format } })}
    />
  )
}

interface LedgerProps {
  query: Parameters<typeof useLedger>[1]
  isFiltered: boolean
  onClear: () => void
}

/** Name of the ledger among the lists whose columns this browser keeps. */
const LIST = 'deliveries'

function Ledger({ query, isFiltered, onClear }: LedgerProps) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const rows = useLedger(['deliveries', 'ledger', query], query)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const { shown, fetchNextPage, hasNextPage, isFetchingNextPage } = rows
  const ids = useMemo(() => shown.map(({ document_id }) => document_id), [shown])
  const columns = useLedgerColumns(useWebhookNames(useMemo(() => shown.map(({ webhook }) => webhook), [shown])))
  const hidden = useHidden(LIST)
  const shownColumns = useMemo(() => columns.filter(({ id }) => id === undefined || !hidden.has(id)), [columns, hidden])
  // The same function for every drawing: a line is drawn anew when what it is given changes.
  const choose = useCallback((id: string, isChosen: boolean) => {
    setChosen((chosen) => {
      const next = new Set(chosen)
      isChosen ? next.add(id) : next.delete(id)
      return next
    })
  }, [])
  return (
    <LedgerOrder value={ids}>
      <Stack gap="xs">
        <Group justify="space-between" mih={28}>
          {chosen.size > 0 ? (
            <Chosen chosen={chosen} onClear={() => setChosen(new Set())} />
          ) : (
            <Text size="sm" c="dimmed">
              {t('ledger.loaded', { count: shown.length })}
            </Text>
          )}
          <Group gap="xs">
            <Tail tail={rows.tail} />
            <Freshness {...rows.read} />
            <ZoneChoice />
            <ColumnChooser list={LIST} columns={columns.flatMap(({ id, label }) => (id ? [{ id, label }] : []))} />
          </Group>
        </Group>
        {rows.isPending && <Loading />}
        {rows.isError && <ProblemCard error={rows.error} onRetry={() => void rows.refetch()} />}
        {rows.isSuccess && shown.length === 0 && <Nothing isFiltered={isFiltered} onClear={onClear} />}
        {shown.length > 0 && (
          <>
            <Newer count={rows.newer} isMany={rows.isMany} onShow={rows.showNewer} />
            <LedgerTable
              rows={shown}
              columns={shownColumns}
              chosen={chosen}
              onChoose={may('webhook-dispatch:replay') ? choose : undefined}
              onEnd={hasNextPage && !isFetchingNextPage && !rows.isError ? () => void fetchNextPage() : undefined}
              isBusy={rows.isFetching}
            />
            {isFetchingNextPage && <Loading lines={2} />}
          </>
        )}
      </Stack>
      <Outlet />
    </LedgerOrder>
  )
}

function Loading({ lines = 10 }: { lines?: number }) {
  const { t } = useTranslation()
  return (
    <Stack gap="xs" aria-busy="true">
      <span className="visually-hidden">{t('list.loading')}</span>
      {Array.from({ length: lines }, (_, index) => (
        <Skeleton key={String(index)} height={33} />
      ))}
    </Stack>
  )
}

function Nothing({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) {
  const { t } = useTranslation()
  const filters = useFilterNames(useSearch({ from: '/deliveries' }))
  return (
    <Paper withBorder p="xl" ta="center">
      {isFiltered ? <NoMatch filters={filters} onClear={onClear} /> : <Text size="sm">{t('deliveries.empty')}</Text>}
    </Paper>
  )
}

/** The newer deliveries of a list that is being read. */
function Newer({ count, isMany, onShow }: { count: number; isMany: boolean; onShow: () => void }) {
  const { t } = useTranslation()
  const text = isMany ? t('ledger.many') : t('list.newer', { count })
  const show = () => {
    window.scrollTo({ top: 0 })
    onShow()
  }
  return (
    <>
      {count > 0 && (
        <Group justify="center" className="newer">
          <Button size="compact-sm" radius="xl" onClick={show}>
            {text}
          </Button>
        </Group>
      )}
      <p className="visually-hidden" role="status">
        {count > 0 ? text : ''}
      </p>
    </>
  )
}

/** Whether the list follows, and the switch that holds it. */
function Tail({ tail }: { tail: ReturnType<typeof useLedger>['tail'] }) {
  const { t } = useTranslation()
  if (!tail) return null
  const { isPaused, isFailing } = tail
  const state = isPaused ? 'paused' : isFailing ? 'failing' : 'live'
  return (
    <Group gap="xs">
      <span className="live-dot" data-state={state} />
      <Text size="sm">{t(`tail.${state}`)}</Text>
      <Button size="compact-xs" variant="default" data-key="newest" onClick={() => tail.setIsPaused(!isPaused)}>
        {isPaused ? t('tail.go-on') : t('tail.pause')}
      </Button>
    </Group>
  )
}

/** Whether instants are shown in UTC; the choice holds on every screen. */
function ZoneChoice() {
  const { t } = useTranslation()
  const { timeZone } = usePreferences()
  return (
    <SegmentedControl
      size="xs"
      transitionDuration={0}
      aria-label={t('prefs.time-zone')}
      value={timeZone}
      onChange={(value) => changePreferences({ timeZone: value as 'utc' })}
      data={[
        { value: 'local', label: t('zone.local') },
        { value: 'utc', label: 'UTC' },
      ]}
    />
  )
}

function Chosen({ chosen, onClear }: { chosen: ReadonlySet<string>; onClear: () => void }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  return (
    <Group gap="xs">
      <Text size="sm" fw={600} role="status">
        {t('ledger.chosen', { count: chosen.size })}
      </Text>
      {may('webhook-dispatch:replay') && (
        <BulkReplay filters={[`document_id|in|${[...chosen].join(',')}`]} label={t('ledger.replay-chosen')} />
      )}
      <Button size="compact-sm" variant="subtle" onClick={onClear}>
        {t('ledger.clear-choice')}
      </Button>
    </Group>
  )
}
