import { Anchor, Button, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { List, useRows } from '../../parts/list.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status, webhookState } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'
import { nameOf } from '../../parts/words/webhook-name.ts'
import { hrefOf } from '../route.ts'
import { Nothing, Screen } from '../screen.tsx'

/** The webhooks of the account. */
export function Webhooks() {
  const { t } = useTranslation('portal')
  const { t: shared } = useTranslation('console')
  const { may } = useAccess()
  const rows = useRows({
    key: ['webhooks'],
    load: (page, signal) => api.webhook.webhookFindAll({ query: { sort: '-created_at', ...page }, signal }),
  })
  const columns: Column<Schemas['Webhook']>[] = [
    {
      label: shared('webhooks.name'),
      opens: true,
      cell: (row) => (
        <Stack gap={0} miw={160} maw={400}>
          <Anchor href={hrefOf('webhooks', row.document_id)} size="sm" fw={600}>
            {nameOf(row)}
          </Anchor>
          <Text size="xs" c="dimmed" lineClamp={2} title={row.mode === 'pull' ? undefined : row.url}>
            {row.mode === 'pull' ? shared('pull.pull') : row.url}
          </Text>
        </Stack>
      ),
    },
    { label: shared('webhooks.state'), cell: (row) => <Status name={webhookState(row)} /> },
    {
      label: t('webhooks.failing'),
      isNumber: true,
      cell: ({ consecutive_failures: failures }) => (failures === 0 ? '–' : failures),
    },
    { label: shared('webhooks.updated'), cell: ({ updated_at }) => <Time at={updated_at} /> },
  ]
  const create = may('webhook:create') && (
    <Button component="a" href={hrefOf('new')} size="compact-md">
      {t('webhooks.new')}
    </Button>
  )
  const hasRows = rows.shown.length > 0
  return (
    <Screen title={shared('webhooks.title')} lead={t('webhooks.lead')} actions={hasRows && create}>
      <List
        caption={shared('webhooks.title')}
        columns={columns}
        rows={rows}
        isFiltered={false}
        empty={
          <Nothing title={t('webhooks.none')} text={t('webhooks.none-text')}>
            {create}
          </Nothing>
        }
      />
    </Screen>
  )
}
