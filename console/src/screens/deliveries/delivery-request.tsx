import { Button, Code, CopyButton, Group, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { buildRequest, toRequestCurl, toRequestText } from './request-text.ts'

/** The request of the last attempt: headers and body, and the command of curl that sends it. */
export function DeliveryRequest({ delivery }: { delivery: Schemas['DispatchWithAttempts'] }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [isOpen, { toggle }] = useDisclosure(false)
  if (!may('event-occurrence:find-one') || !may('webhook:find-one')) return null
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={3} size="h5">
          {t('delivery.request')}
        </Title>
        <Button size="compact-xs" variant="default" aria-expanded={isOpen} onClick={toggle}>
          {isOpen ? t('delivery.request-hide') : t('delivery.request-show')}
        </Button>
      </Group>
      {isOpen && <RequestText delivery={delivery} />}
    </Stack>
  )
}

function RequestText({ delivery }: { delivery: Schemas['DispatchWithAttempts'] }) {
  const { t } = useTranslation()
  const { document_id: dispatch, event_id, webhook, attempts } = delivery
  const found = useQuery({
    queryKey: ['delivery-request', event_id, webhook],
    queryFn: async ({ signal }) => {
      const [event, receiver] = await Promise.all([
        api.webhook.eventOccurrenceFindOne({ path: { id: event_id }, signal }),
        api.webhook.webhookFindOne({ path: { id: webhook }, signal }),
      ])
      return { event: event.data, url: receiver.data.url }
    },
  })
  if (found.isPending) return <Skeleton height={160} />
  if (found.isError) return <ProblemCard error={found.error} onRetry={() => void found.refetch()} />
  const request = buildRequest({ ...found.data, dispatch, attempt: Math.max(1, attempts) })
  return (
    <Stack gap="xs">
      <Text size="xs" c="dimmed">
        {t('delivery.request-text')}
      </Text>
      <Code block className="wrap" data-testid="request">
        {toRequestText(request)}
      </Code>
      {request.url !== '' && (
        <Group>
          <CopyButton value={toRequestCurl(request)}>
            {({ copied, copy }) => (
              <Button size="compact-xs" variant="default" onClick={copy}>
                {copied ? t('copy.done') : t('delivery.curl')}
              </Button>
            )}
          </CopyButton>
        </Group>
      )}
    </Stack>
  )
}
