import { Alert, Button, Code, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Icon } from '../../frame/icons.tsx'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { formatMs } from '../../parts/chart/format.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { ReplayDialog } from '../../parts/replay-dialog.tsx'
import { Status } from '../../parts/status.tsx'
import { Instant } from '../../parts/time.tsx'
import { NextAttempt } from '../../screens/deliveries/next-attempt.tsx'
import { RetryStrip } from '../../screens/deliveries/retry-strip.tsx'
import { useWebhookNames } from '../../screens/deliveries/use-webhook-names.ts'
import { tell } from '../host.ts'
import { hrefOf } from '../route.ts'
import { Screen } from '../screen.tsx'
import { WebhookLink } from './delivery-list.tsx'

type Row = Schemas['DispatchWithAttempts']
type Attempt = Schemas['Attempt']
type Fault = Exclude<Attempt['error_class'], null>

const ACTIVE = ['pending', 'retrying']

/** Answers of a receiver that say by themselves what is wrong. */
const TELLING_CODES = [401, 403, 404, 410, 429] as const

/** One delivery: what happened at each attempt, why, and what helps. */
export function Delivery({ id }: { id: string }) {
  const { t } = useTranslation('console')
  const delivery = useQuery({
    queryKey: ['delivery', id],
    queryFn: ({ signal }) => api.webhook.webhookDispatchFindOne({ path: { id }, signal }),
    refetchInterval: ({ state }) => (ACTIVE.includes(state.data?.data.status ?? '') ? 1_000 : false),
  })
  const row = delivery.data?.data
  return (
    <Screen
      title={row?.event ?? t('delivery.title')}
      back={{ label: t('deliveries.title'), href: hrefOf('deliveries') }}
      lead={row && <Status name={row.status} />}
      actions={row && <Replay delivery={row} />}
    >
      <Loaded query={delivery} height={240}>
        {({ data }) => <Detail delivery={data} />}
      </Loaded>
    </Screen>
  )
}

function Detail({ delivery }: { delivery: Row }) {
  const { t } = useTranslation('console')
  const { document_id, webhook, event_id, attempts_log, created_at, next_attempt_at, is_test } = delivery
  const names = useWebhookNames([webhook])
  return (
    <Stack gap="lg">
      {!is_test && <RetryStrip delivery={delivery} />}
      <Explanation delivery={delivery} />
      <Stack gap="sm">
        <Title order={2} size="h4">
          {t('delivery.attempts', { count: attempts_log.length })}
        </Title>
        {attempts_log.length === 0 && (
          <Text size="sm" c="dimmed">
            {t('delivery.no-attempt')}
          </Text>
        )}
        {attempts_log.toReversed().map((attempt) => (
          <AttemptCard key={attempt.attempt} attempt={attempt} />
        ))}
      </Stack>
      <Facts
        lines={[
          [t('deliveries.webhook'), <WebhookLink key="webhook" id={webhook} names={names} />],
          [t('delivery.id'), <CopyText key="id" text={document_id} />],
          [t('event.id'), <CopyText key="event" text={event_id} />],
          [t('deliveries.created'), <Instant key="created" at={created_at} />],
          next_attempt_at === null ? undefined : [t('deliveries.next'), <NextAttempt key="next" row={delivery} />],
        ]}
      />
    </Stack>
  )
}

/** One POST: when, by what, what was answered, and the answer itself. */
function AttemptCard({ attempt }: { attempt: Attempt }) {
  const { t, i18n } = useTranslation('console')
  const { status_code: code, error_class: fault, duration_ms: ms, response_excerpt: text } = attempt
  return (
    <Paper withBorder p="sm">
      <Stack gap={6}>
        <Group justify="space-between" gap="xs">
          <Group gap="xs">
            <span style={{ color: fault === null ? 'var(--status-good)' : 'var(--status-bad)', display: 'flex' }}>
              <Icon name={fault === null ? 'good' : 'bad'} size={16} />
            </span>
            <Text size="sm" fw={600}>
              {t('delivery.attempt', { number: attempt.attempt, trigger: t(`trigger.${attempt.trigger}`) })}
            </Text>
          </Group>
          <Text size="sm" c="dimmed">
            <Instant at={attempt.started_at} />
          </Text>
        </Group>
        <Text size="sm">
          {[code === null ? '' : `HTTP ${code}`, fault === null ? '' : t(`fault.${fault}`), formatMs(ms, i18n.language)]
            .filter(Boolean)
            .join(' · ')}
        </Text>
        {text && (
          <details>
            <summary>{t('delivery.answer')}</summary>
            <Code block className="wrap" mt={4}>
              {text}
            </Code>
          </details>
        )}
      </Stack>
    </Paper>
  )
}

/** Why a delivery failed and what helps, in plain words. */
function Explanation({ delivery }: { delivery: Row }) {
  const { t } = useTranslation('console')
  const { last_error: fault, last_status_code: code, status } = delivery
  if (fault === null || status === 'success') return null
  const telling = TELLING_CODES.find((item) => item === code)
  return (
    <Alert color="gray" variant="outline" title={t('explain.title')} icon={<Icon name="warn" />}>
      <Text size="sm">{telling ? t(`explain.${telling}`) : t(`explain.${fault as Fault}`)}</Text>
    </Alert>
  )
}

function Replay({ delivery }: { delivery: Row }) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  const [isOpen, { open, close }] = useDisclosure(false)
  const id = delivery.document_id
  const isRisky = ['success', ...ACTIVE].includes(delivery.status)
  const replay = useChange({
    make: (isConfirmed: boolean) =>
      api.webhook.webhookDispatchReplay({ path: { id }, body: { confirm_duplicate: isConfirmed } }),
    touches: [['delivery', id], ['deliveries']],
    onDone: () => {
      tell({ type: 'happened', name: 'delivery-replayed', id })
      close()
    },
  })
  if (!may('webhook-dispatch:replay')) return null
  return (
    <>
      <Button size="compact-md" variant={isRisky ? 'default' : 'filled'} onClick={open}>
        {t('replay.do')}
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
