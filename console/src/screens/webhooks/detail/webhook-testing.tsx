import { Button, Card, Code, Group, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { useChange } from '../../../frame/use-change.ts'
import { ProblemCard } from '../../../parts/problem.tsx'
import { Status } from '../../../parts/status.tsx'
import { TextLink } from '../../../parts/text-link.tsx'
import { LastAnswer } from '../../deliveries/delivery-table.tsx'
import { SignatureDebugger } from './signature-debugger.tsx'

/** Version of the envelope (docs/contract/webhooks.md#envelope). */
const API_VERSION = '2026-09-11'

/** Sends a test and follows its delivery; shows what a receiver gets; examines a signature. */
export function WebhookTesting({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation()
  return (
    <Stack>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <SendTest webhook={webhook} />
        <Request webhook={webhook} />
      </SimpleGrid>
      <Card withBorder>
        <Title order={2} size="h5" mb="xs">
          {t('webhooks.tab.signature')}
        </Title>
        <SignatureDebugger webhook={webhook} />
      </Card>
    </Stack>
  )
}

function SendTest({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const path = { id: webhook.document_id }
  const send = useChange({ make: () => api.webhook.webhookTest({ path }), touches: [['deliveries'], ['activity']] })
  const id = send.data?.data.dispatch_id
  const delivery = useQuery({
    queryKey: ['delivery', id],
    queryFn: ({ signal }) => api.webhook.webhookDispatchFindOne({ path: { id: id ?? '' }, signal }),
    enabled: id !== undefined,
    refetchInterval: ({ state }) => (state.data?.data.status === 'pending' ? 500 : 2_000),
  })
  const row = delivery.data?.data
  return (
    <Card withBorder>
      <Stack gap="sm" align="flex-start">
        <Title order={2} size="h5">
          {t('webhooks.test')}
        </Title>
        <Text size="sm" c="dimmed">
          {t('testing.lead')}
        </Text>
        <Button disabled={!may('webhook:test')} loading={send.isPending} onClick={() => send.mutate(undefined)}>
          {t('testing.send')}
        </Button>
        {send.isError && <ProblemCard error={send.error} />}
        {row && (
          <Group gap="xs" role="status">
            <Status name={row.status} />
            <LastAnswer row={row} />
            <TextLink to="/deliveries/$id" params={{ id: row.document_id }} size="sm">
              {t('event.open-delivery')}
            </TextLink>
          </Group>
        )}
      </Stack>
    </Card>
  )
}

/** The request of a test as a receiver gets it, with placeholders for what differs. */
function Request({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation()
  const { account, document_id: id } = webhook
  const body = {
    id: '<event id>',
    type: 'webhook.test',
    api_version: API_VERSION,
    created_at: '<time>',
    attempt: 1,
    data: { account, resource: 'webhook', action: 'test', id, url: `/api/v3/webhook/webhook/${id}` },
  }
  const lines = [
    ...(webhook.mode === 'pull' ? [] : [`POST ${new URL(webhook.url).pathname}`]),
    'content-type: application/json',
    'x-service-event: webhook.test',
    'x-service-delivery: <delivery id>',
    'x-service-attempt: 1',
    'x-service-signature: t=<seconds>,v1=<hex>',
    'webhook-id: <event id>',
    'webhook-timestamp: <seconds>',
    `webhook-signature: v1,<base64>${webhook.public_key === null ? '' : ' v1a,<base64>'}`,
    '',
    JSON.stringify(body, null, 2),
  ]
  return (
    <Card withBorder>
      <Stack gap="sm">
        <Title order={2} size="h5">
          {t('testing.request')}
        </Title>
        <Code block className="wrap">
          {lines.join('\n')}
        </Code>
      </Stack>
    </Card>
  )
}
