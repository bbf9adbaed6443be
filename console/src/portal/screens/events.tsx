import { Anchor, Code, Paper, Stack, Tabs, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { List, useRows } from '../../parts/list.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Time } from '../../parts/time.tsx'
import { useDescriptions } from '../../parts/words/descriptions.ts'
import { DeprecatedBadge } from '../../screens/catalogue/deprecation.tsx'
import { hrefOf } from '../route.ts'
import { Nothing, Screen } from '../screen.tsx'

/** The events that the account can subscribe to, and those that happened. */
export function Events() {
  const { t } = useTranslation('portal')
  return (
    <Screen title={t('tab.events')} lead={t('events.lead')}>
      <Tabs defaultValue="types" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="types">{t('events.types')}</Tabs.Tab>
          <Tabs.Tab value="happened">{t('events.happened')}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="types" pt="md">
          <EventTypes />
        </Tabs.Panel>
        <Tabs.Panel value="happened" pt="md">
          <Happened />
        </Tabs.Panel>
      </Tabs>
    </Screen>
  )
}

function EventTypes() {
  const { t } = useTranslation('portal')
  const { ofType } = useDescriptions()
  const rows = useRows({
    key: ['event-type-list'],
    load: (page, signal) =>
      api.webhook.eventFindAll({ query: { sort: 'internal', filters: ['is_actived|eq|true'], ...page }, signal }),
  })
  const columns: Column<Schemas['EventType']>[] = [
    {
      label: t('events.name'),
      cell: (type) => (
        <Stack gap={4} align="flex-start">
          <span className="mono">{type.internal}</span>
          <DeprecatedBadge type={type} />
        </Stack>
      ),
    },
    { label: t('events.group'), cell: ({ group }) => group ?? '–' },
    {
      label: t('events.meaning'),
      cell: (type) => (
        <Stack gap={4}>
          <Text size="sm" c="dimmed">
            {ofType(type) ?? '–'}
          </Text>
          {type.deprecation_remedy !== null && <Text size="sm">{type.deprecation_remedy}</Text>}
          {type.example !== null && (
            <details>
              <summary>{t('events.example')}</summary>
              <Code block className="wrap">
                {JSON.stringify(type.example, null, 2)}
              </Code>
            </details>
          )}
        </Stack>
      ),
    },
  ]
  return (
    <List
      caption={t('events.types')}
      columns={columns}
      rows={rows}
      isFiltered={false}
      empty={<Nothing title={t('events.no-type')} />}
    />
  )
}

function Happened() {
  const { t } = useTranslation('portal')
  const { t: shared } = useTranslation('console')
  const rows = useRows({
    key: ['events'],
    load: (page, signal) => api.webhook.eventOccurrenceFindAll({ query: { sort: '-created_at', ...page }, signal }),
    isNewestFirst: true,
  })
  const columns: Column<Schemas['EventOccurrence']>[] = [
    { label: t('events.name'), cell: ({ event }) => <span className="mono nowrap">{event}</span> },
    { label: shared('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
    {
      label: shared('event.resource'),
      cell: ({ resource_id }) => (resource_id === null ? '–' : <CopyText text={resource_id} isShort />),
    },
    { label: shared('event.id'), cell: ({ document_id }) => <CopyText text={document_id} isShort /> },
  ]
  return (
    <Stack>
      <Paper withBorder p="sm">
        <Text size="sm">
          {t('events.where')} <Anchor href={hrefOf('deliveries')}>{shared('deliveries.title')}</Anchor>
        </Text>
      </Paper>
      <List
        caption={t('events.happened')}
        columns={columns}
        rows={rows}
        isFiltered={false}
        empty={<Nothing title={t('events.none')} />}
      />
    </Stack>
  )
}
