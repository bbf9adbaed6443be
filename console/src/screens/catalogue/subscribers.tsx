import { Button, Group, Select, Stack, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { List, useRows } from '../../parts/list.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import type { EventType } from './filter-types.ts'

/** The webhooks that a user sees, by name, to choose from. */
function useWebhookNames() {
  const { may } = useAccess()
  return useQuery({
    queryKey: ['webhooks', 'choice'],
    queryFn: ({ signal }) => api.webhook.webhookFindAll({ query: { sort: '-created_at', page_size: 200 }, signal }),
    enabled: may('webhook:find-all'),
    staleTime: 10_000,
  })
}

const nameOf = ({ name, url }: Schemas['Webhook']) => name ?? url

/** The webhooks that subscribe to an event type, and the way to add one. */
export function Subscribers({ type }: { type: EventType }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const webhooks = useWebhookNames().data?.data ?? []
  const names = new Map(webhooks.map((webhook) => [webhook.document_id, nameOf(webhook)]))
  const filters = [`event|eq|${type.document_id}`]
  const rows = useRows({
    key: ['subscriptions', type.document_id],
    load: (page, signal) => api.webhook.webhookEventFindAll({ query: { filters, ...page }, signal }),
  })
  const columns: Column<Schemas['Subscription']>[] = [
    {
      label: t('deliveries.webhook'),
      opens: true,
      cell: ({ webhook }) => (
        <TextLink to="/webhooks/$id" params={{ id: webhook }} size="sm">
          {names.get(webhook) ?? webhook}
        </TextLink>
      ),
    },
    { label: t('catalogue.since'), cell: ({ created_at }) => <Time at={created_at} /> },
  ]
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={2} size="h4">
          {t('catalogue.subscribers')}
        </Title>
        {may('webhook-event:create') && type.is_actived && <Subscribe type={type} webhooks={webhooks} />}
      </Group>
      <List
        caption={t('catalogue.subscribers')}
        columns={columns}
        rows={rows}
        isFiltered={false}
        empty={<Text size="sm">{t('catalogue.no-subscriber')}</Text>}
      />
    </Stack>
  )
}

function Subscribe({ type, webhooks }: { type: EventType; webhooks: readonly Schemas['Webhook'][] }) {
  const { t } = useTranslation()
  const [isOpen, { open, close }] = useDisclosure(false)
  const [webhook, setWebhook] = useState<string | null>(null)
  const subscribe = useChange({
    make: () => api.webhook.webhookEventCreate({ body: { webhook: webhook ?? '', event: type.document_id } }),
    touches: [['subscriptions'], ['event-types'], ['routing-forecast'], ['webhooks']],
    onDone: close,
  })
  return (
    <>
      <Button variant="default" size="compact-sm" onClick={open}>
        {t('catalogue.subscribe')}
      </Button>
      <ConfirmDialog
        title={t('catalogue.subscribe')}
        label={t('catalogue.subscribe-do')}
        isOpen={isOpen}
        onClose={close}
        onConfirm={() => subscribe.mutate(undefined)}
        change={subscribe}
      >
        <Select
          label={t('deliveries.webhook')}
          description={type.account_scope === 'none' ? t('catalogue.rule.none') : undefined}
          data={webhooks.map((webhook) => ({ value: webhook.document_id, label: nameOf(webhook) }))}
          value={webhook}
          onChange={setWebhook}
          searchable
          nothingFoundMessage={t('catalogue.no-webhook')}
        />
      </ConfirmDialog>
    </>
  )
}
