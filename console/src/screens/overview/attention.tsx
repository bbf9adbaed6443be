import { Card, Group, Progress, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { CardHeading, EmptyCard } from '../../parts/card.tsx'
import { Status, webhookState } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { DISABLE_AFTER, nameOf } from '../../parts/words/webhook-name.ts'

type Webhook = Schemas['Webhook']

const BulkReplay = lazy(() =>
  import('../deliveries/bulk-replay.tsx').then((module) => ({ default: module.BulkReplay })),
)

/** Failures in a row from which on a webhook is shown: there are five left to mend it. */
const NEAR_DISABLE = 15

/** Webhooks that each list shows. */
const SHOWN = 5

/** The webhooks that fail most, and those that wait for somebody. */
export function Attention() {
  const { may } = useAccess()
  if (!may('webhook:find-all')) return null
  return (
    <>
      <TopFailing />
      <NeedsAttention />
    </>
  )
}

function TopFailing() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const found = useQuery({
    queryKey: ['webhooks', 'top-failing'],
    queryFn: ({ signal }) =>
      api.webhook.webhookFindAll({
        query: { filters: ['consecutive_failures|gt|0'], sort: '-consecutive_failures', page_size: SHOWN },
        signal,
      }),
    refetchInterval: 10_000,
  })
  const rows = found.data?.data ?? []
  return (
    <Card withBorder>
      <Stack gap="sm">
        <CardHeading title={t('overview.top')} summary={t('overview.top-lead')} />
        {rows.map((row) => (
          <div key={row.document_id}>
            <Group justify="space-between" gap="xs" wrap="nowrap">
              <TextLink to="/webhooks/$id" params={{ id: row.document_id }} size="sm" miw={0} className="wrap">
                {nameOf(row)}
              </TextLink>
              <Group gap="xs" wrap="nowrap">
                <Text size="sm" c="dimmed" className="nowrap">
                  {t('webhooks.of', { failures: row.consecutive_failures, limit: DISABLE_AFTER })}
                </Text>
                {may('webhook-dispatch:replay') && (
                  <Suspense>
                    <BulkReplay
                      filters={[`webhook|eq|${row.document_id}`, 'status|in|exhausted,failed']}
                      label={t('replay.do')}
                      name={t('overview.replay-of', { name: nameOf(row) })}
                      lead={t('overview.replay-lead', { name: nameOf(row) })}
                    />
                  </Suspense>
                )}
              </Group>
            </Group>
            <Progress
              value={(row.consecutive_failures / DISABLE_AFTER) * 100}
              color={row.consecutive_failures >= NEAR_DISABLE ? 'red' : 'yellow'}
              size="sm"
              aria-label={nameOf(row)}
            />
          </div>
        ))}
        {found.isSuccess && rows.length === 0 && <EmptyCard text={t('overview.no-failing')} />}
      </Stack>
    </Card>
  )
}

function NeedsAttention() {
  const { t } = useTranslation()
  const found = useQuery({
    queryKey: ['webhooks', 'attention'],
    queryFn: async ({ signal }) => {
      const read = (filters: string[]) =>
        api.webhook.webhookFindAll({ query: { filters, sort: '-updated_at', page_size: SHOWN }, signal })
      const [near, disabled] = await Promise.all([
        read([`consecutive_failures|gte|${NEAR_DISABLE}`, 'is_actived|eq|true']),
        read(['is_actived|eq|false', 'disabled_reason|in|consecutive-failures,legacy-secret-rotation-required']),
      ])
      return [...near.data, ...disabled.data]
    },
    refetchInterval: 10_000,
  })
  return (
    <Card withBorder>
      <Stack gap="sm">
        <CardHeading title={t('overview.attention')} summary={t('overview.attention-lead')} />
        {found.data?.map((row) => (
          <div key={row.document_id}>
            <Group justify="space-between" gap="xs" wrap="nowrap">
              <TextLink to="/webhooks/$id" params={{ id: row.document_id }} size="sm" fw={600} miw={0} className="wrap">
                {nameOf(row)}
              </TextLink>
              <Status name={webhookState(row)} />
            </Group>
            <Text size="sm" c="dimmed">
              <Reason webhook={row} />
            </Text>
          </div>
        ))}
        {found.data?.length === 0 && <EmptyCard text={t('overview.no-attention')} />}
      </Stack>
    </Card>
  )
}

function Reason({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  if (webhook.disabled_reason !== null) return <>{t(`disabled.${webhook.disabled_reason}`)}</>
  return <>{t('overview.near', { count: DISABLE_AFTER - webhook.consecutive_failures })}</>
}
