import { Badge, Button, Group, NativeSelect, NavLink, Paper, Skeleton, Stack, Text, TextInput } from '@mantine/core'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { FilterChoice } from '../../parts/form.tsx'
import { Freshness, readOf } from '../../parts/freshness.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { NoMatch } from '../../parts/no-match.tsx'
import { Page } from '../../parts/page.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { type Column, RowTable } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { useDescriptions } from '../../parts/words/descriptions.ts'
import { valueName } from '../../parts/words/value-name.ts'
import { DeprecatedBadge } from './deprecation.tsx'
import { useEventTypes, useStaleNames, useSubscriberCounts, useVolumes } from './event-types.ts'
import { type CatalogueFilters, type EventType, filterTypes, listGroups, resourceOf, stateOf } from './filter-types.ts'

/** Everything that can happen: the event types by resource, with who produces each and how many subscribe. */
export const CatalogueScreen = guardScreen('event:find-all', 'catalogue.title', Catalogue)

function Catalogue() {
  const { t } = useTranslation()
  const { may } = useAccess()
  return (
    <Page
      title={t('catalogue.title')}
      lead={t('catalogue.lead')}
      actions={
        <>
          {may('webhook:catalogue-status') && (
            <Button component={Link} to="/catalogue/status" variant="default" size="compact-sm">
              {t('catalogue.status')}
            </Button>
          )}
          <ApiCall
            operation="webhook.eventFindAll"
            method="GET"
            path="/api/v3/webhook/event"
            query={{ sort: 'internal', page_size: '200' }}
          />
        </>
      }
    >
      <EventTypes />
    </Page>
  )
}

function EventTypes() {
  const { t } = useTranslation()
  const filters = useSearch({ from: '/catalogue' })
  const navigate = useNavigate()
  const choose = (change: CatalogueFilters) => {
    const next = Object.entries({ ...filters, ...change }).filter(([, value]) => value)
    void navigate({ to: '/catalogue', search: Object.fromEntries(next), replace: true })
  }
  const types = useEventTypes()
  const stale = useStaleNames()
  const columns = useColumns(stale)
  const shown = filterTypes(useDescribed(types.data), filters, stale)
  if (types.isPending) return <Skeleton height={400} />
  if (types.isError) return <ProblemCard error={types.error} onRetry={() => void types.refetch()} />
  if (types.data.length === 0)
    return (
      <Paper withBorder p="xl" ta="center">
        <Stack align="center">
          <Text size="sm">{t('catalogue.empty')}</Text>
          <TextLink to="/catalogue/status">{t('catalogue.status')}</TextLink>
        </Stack>
      </Paper>
    )
  return (
    <div className="split">
      <Resources types={types.data} chosen={filters.resource} onChoose={(resource) => choose({ resource })} />
      <Stack gap="sm" miw={0}>
        <Group align="flex-end" gap="sm">
          <TextInput
            label={t('catalogue.search')}
            value={filters.q ?? ''}
            onChange={({ currentTarget }) => choose({ q: currentTarget.value })}
          />
          <FilterChoice
            label={t('catalogue.state')}
            value={filters.state}
            onChange={(value) => choose({ state: value })}
            options={(['active', 'stale', 'inactive'] as const).map((value) => ({
              value,
              label: t(`status.${value}`),
            }))}
          />
          <FilterChoice
            label={t('catalogue.group')}
            value={filters.group}
            onChange={(value) => choose({ group: value })}
            options={listGroups(types.data).map((value) => ({ value, label: value }))}
          />
        </Group>
        <Group justify="space-between">
          <Text size="sm" c="dimmed" role="status">
            {t('catalogue.count', { count: shown.length })}
          </Text>
          <Freshness {...readOf(types)} />
        </Group>
        {shown.length === 0 ? (
          <Paper withBorder p="xl" ta="center">
            <NoMatch
              filters={[
                [t('catalogue.search'), filters.q],
                [t('catalogue.resource'), filters.resource],
                [t('catalogue.state'), filters.state && valueName('status', filters.state, t)],
                [t('catalogue.group'), filters.group],
              ]}
              onClear={() => void navigate({ to: '/catalogue', search: {}, replace: true })}
            />
          </Paper>
        ) : (
          <RowTable caption={t('catalogue.title')} columns={columns} rows={shown} isBusy={types.isFetching} />
        )}
      </Stack>
    </div>
  )
}

/** The event types as the language of the page describes them, in which they are searched. */
function useDescribed(types: readonly EventType[] = []): EventType[] {
  const { ofType } = useDescriptions()
  return types.map((type) => ({ ...type, description: ofType(type) }))
}

function useColumns(stale: ReadonlySet<string>): Column<EventType>[] {
  const { t } = useTranslation()
  const counts = useSubscriberCounts()
  const volumes = useVolumes()
  const { may } = useAccess()
  return [
    {
      label: t('deliveries.event'),
      opens: true,
      cell: (type) => <Name type={type} />,
    },
    { label: t('catalogue.scope'), cell: (type) => <ScopeBadge scope={type.account_scope} /> },
    {
      label: t('catalogue.subscribers'),
      isNumber: true,
      cell: ({ document_id }) => counts.get(document_id) ?? '–',
    },
    ...(may('webhook:dashboard-events')
      ? [
          {
            label: t('catalogue.volume'),
            isNumber: true,
            cell: ({ internal }: EventType) => (volumes ? (volumes.get(internal)?.attempts ?? 0) : '–'),
          },
        ]
      : []),
    { label: t('catalogue.state'), cell: (type) => <Status name={stateOf(type, stale)} /> },
  ]
}

/** Name, source and meaning of an event type, and what to use in its place. */
function Name({ type }: { type: EventType }) {
  const { t } = useTranslation()
  const { document_id, internal, method, route, source, description, deprecation_remedy: remedy } = type
  return (
    <Stack gap={0} miw={280}>
      <Group gap="xs">
        <TextLink to="/catalogue/$id" params={{ id: document_id }} size="sm" fw={600} className="wrap">
          {internal}
        </TextLink>
        <DeprecatedBadge type={type} />
      </Group>
      <Text size="xs" c="dimmed" className="wrap">
        {method ? `${method} ${route}` : `${t('catalogue.produced')} ${t(`catalogue.source.${source}`)}`}
      </Text>
      {description && <Text size="xs">{description}</Text>}
      {remedy !== null && <Text size="xs">{remedy}</Text>}
    </Stack>
  )
}

/** Whether the events have an owner. */
export function ScopeBadge({ scope }: { scope: EventType['account_scope'] }) {
  return (
    <Badge variant="outline" color={scope === 'account' ? 'ink' : 'gray'} tt="none">
      {scope}
    </Badge>
  )
}

interface ResourcesProps {
  types: readonly EventType[]
  chosen: string | undefined
  onChoose: (resource: string) => void
}

/** The resources, each with its event types below it while it is chosen. On a phone one field in their place. */
function Resources({ types, chosen, onChoose }: ResourcesProps) {
  const { t } = useTranslation()
  const groups = [...Map.groupBy(types, ({ internal }) => resourceOf(internal))]
  return (
    <>
      <NativeSelect
        hiddenFrom="md"
        label={t('catalogue.resource')}
        value={chosen ?? ''}
        onChange={({ currentTarget }) => onChoose(currentTarget.value)}
        data={[{ value: '', label: t('filters.all') }, ...groups.map(([name]) => name)]}
      />
      <Stack component="nav" gap={0} visibleFrom="md" aria-label={t('catalogue.resource')}>
        <NavLink component="button" label={t('filters.all')} active={!chosen} onClick={() => onChoose('')} />
        {groups.map(([name, members]) => (
          <NavLink
            key={name}
            component="button"
            label={name}
            rightSection={
              <Text size="xs" c="dimmed">
                {members.length}
              </Text>
            }
            active={chosen === name}
            opened={chosen === name}
            aria-expanded={chosen === name}
            onClick={() => onChoose(chosen === name ? '' : name)}
            childrenOffset={12}
          >
            {members.map(({ document_id, internal }) => (
              <NavLink
                key={document_id}
                component={Link}
                to={`/catalogue/${document_id}`}
                label={internal.slice(name.length + 1)}
                py={4}
              />
            ))}
          </NavLink>
        ))}
      </Stack>
    </>
  )
}
