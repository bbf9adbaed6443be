import { Alert, Button, Group, Stack, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useRouter } from '@tanstack/react-router'
import { use } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Icon } from '../../frame/icons.tsx'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { SidePanel } from '../../parts/dialog.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Account } from '../../parts/names.tsx'
import { Page } from '../../parts/page.tsx'
import { ReplayDialog } from '../../parts/replay-dialog.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Instant } from '../../parts/time.tsx'
import { formatSpan } from '../../parts/words/span.ts'
import { Attempts } from './attempts.tsx'
import { keepBeside, useIsBeside } from './beside.ts'
import { DeliveryRequest } from './delivery-request.tsx'
import { findNeighbours } from './ledger.ts'
import { NextAttempt } from './next-attempt.tsx'
import { RetryStrip } from './retry-strip.tsx'
import { LedgerOrder } from './use-ledger.ts'
import { useWebhookNames } from './use-webhook-names.ts'

type Delivery = Schemas['DispatchWithAttempts']

const ACTIVE = ['pending', 'retrying']

/** One delivery: beside the ledger where it was opened from a list, else as a page. */
export function DeliveryScreen() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/deliveries/$id' })
  const isBeside = useIsBeside()
  const navigate = useNavigate()
  const router = useRouter()
  const delivery = useQuery({
    queryKey: ['delivery', id],
    queryFn: ({ signal }) => api.webhook.webhookDispatchFindOne({ path: { id }, signal }),
    refetchInterval: ({ state }) => (ACTIVE.includes(state.data?.data.status ?? '') ? 2_000 : false),
  })
  const content = (
    <>
      <Loaded query={delivery} height={200}>
        {({ data }) => <Detail delivery={data} order={isBeside ? 3 : 2} />}
      </Loaded>
    </>
  )
  if (!isBeside)
    return (
      <Page title={t('delivery.title')} parent={{ label: t('deliveries.title'), to: '/deliveries' }}>
        {content}
      </Page>
    )
  const close = () => {
    if (router.latestLocation.state.isFromElsewhere) router.history.back()
    else void navigate({ to: '/deliveries', search: true })
  }
  return (
    <SidePanel title={t('delivery.title')} isOpen onClose={close}>
      <Neighbours id={id} />
      {content}
    </SidePanel>
  )
}

/** Leads to the deliveries before and after this one in the list. */
function Neighbours({ id }: { id: string }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { before, after } = findNeighbours(use(LedgerOrder), id)
  const open = (other: string | undefined) => {
    if (other !== undefined)
      void navigate({ to: '/deliveries/$id', params: { id: other }, search: true, state: keepBeside, replace: true })
  }
  return (
    <Group gap="xs" mb="sm">
      <Button
        size="compact-xs"
        variant="default"
        data-key="neighbour-previous"
        disabled={before === undefined}
        onClick={() => open(before)}
      >
        {t('delivery.before')}
      </Button>
      <Button
        size="compact-xs"
        variant="default"
        data-key="neighbour-next"
        disabled={after === undefined}
        onClick={() => open(after)}
      >
        {t('delivery.after')}
      </Button>
      <TextLink to="/deliveries/$id" params={{ id }} size="sm">
        {t('delivery.as-page')}
      </TextLink>
    </Group>
  )
}

/** Each attempt with its result, the reason, and what can be done. `order`: level of its headings. */
function Detail({ delivery, order }: { delivery: Delivery; order: 2 | 3 }) {
  const { t } = useTranslation()
  const { document_id, status, event, webhook, event_id, account, attempts_log, created_at, next_attempt_at } = delivery
  const webhooks = useWebhookNames([webhook])
  return (
    <Stack>
      <Group justify="space-between">
        <Group gap="xs">
          <Status name={status} />
          <Title order={order} size="h4">
            {event}
          </Title>
        </Group>
        <Group gap="xs">
          <Replay delivery={delivery} />
          <ApiCall
            operation="webhook.webhookDispatchFindOne"
            method="GET"
            path={`/api/v3/webhook/dispatch/${document_id}`}
          />
        </Group>
      </Group>
      <RetryStrip delivery={delivery} />
      <Explanation delivery={delivery} />
      <Facts
        lines={[
          [t('delivery.id'), <CopyText key="id" text={document_id} />],
          [
            t('deliveries.event'),
            <Group key="event" gap="xs">
              <TextLink to="/events/$id" params={{ id: event_id }} size="sm">
                {event}
              </TextLink>
              <CopyText text={event_id} isShort />
            </Group>,
          ],
          [
            t('deliveries.webhook'),
            <Group key="webhook" gap="xs">
              <TextLink to="/webhooks/$id" params={{ id: webhook }} size="sm">
                {webhooks.get(webhook) ?? t('webhooks.one')}
              </TextLink>
              <CopyText text={webhook} isShort />
            </Group>,
          ],
          account === null ? undefined : [t('delivery.account'), <Account key="account" id={account} />],
          [t('deliveries.created'), <Instant key="created" at={created_at} />],
          delivery.last_attempt_at === null
            ? undefined
            : [t('delivery.total'), <Total key="total" delivery={delivery} />],
          next_attempt_at === null ? undefined : [t('deliveries.next'), <NextAttempt key="next" row={delivery} />],
        ]}
      />
      <Attempts attempts={attempts_log} plannedAt={next_attempt_at} order={order} />
      <DeliveryRequest delivery={delivery} />
    </Stack>
  )
}

/** The time from the creation to the end of the last attempt. */
function Total({ delivery }: { delivery: Delivery }) {
  const { i18n } = useTranslation()
  const { created_at, last_attempt_at, last_duration_ms } = delivery
  const ms = Date.parse(last_attempt_at ?? created_at) + (last_duration_ms ?? 0) - Date.parse(created_at)
  return <>{formatSpan(ms, i18n.language)}</>
}

/** Why a delivery failed and what helps, in plain words. */
function Explanation({ delivery }: { delivery: Delivery }) {
  const { t } = useTranslation()
  const { last_error: fault, last_status_code: code, status } = delivery
  if (fault === null || status === 'success') return null
  // By the status code where that says more than the failure class.
  const known = code === 401 || code === 403 || code === 404 || code === 410 || code === 429
  const text = known ? t(`explain.${code}`) : t(`explain.${fault as Exclude<Schemas['Attempt']['error_class'], null>}`)
  return (
    <Alert color="gray" variant="outline" title={t('explain.title')} icon={<Icon name="warn" />}>
      <Text size="sm">{text}</Text>
    </Alert>
  )
}

function Replay({ delivery }: { delivery: Delivery }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [isOpen, { open, close }] = useDisclosure(false)
  const isRisky = ['success', ...ACTIVE].includes(delivery.status)
  const path = { id: delivery.document_id }
  const replay = useChange({
    make: (isConfirmed: boolean) =>
      api.webhook.webhookDispatchReplay({ path, body: { confirm_duplicate: isConfirmed } }),
    touches: [['delivery', delivery.document_id], ['deliveries'], ['dashboard']],
    onDone: close,
  })
  if (!may('webhook-dispatch:replay')) return null
  return (
    <>
      <Button size="compact-sm" data-key="replay" onClick={open}>
        {isRisky ? t('replay.force') : t('replay.do')}
      </Button>
      <ReplayDialog
        title={t('replay.title')}
        label={t('replay.do')}
        text={t('replay.text')}
        confirmation={isRisky ? t('replay.confirm') : undefined}
        isOpen={isOpen}
        onClose={close}
        replay={replay}
      />
    </>
  )
}
