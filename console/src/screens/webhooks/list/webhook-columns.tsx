import { Checkbox, Group, Progress, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { AccountLink } from '../../../parts/names.tsx'
import type { Column } from '../../../parts/row-table.tsx'
import { Status, webhookState } from '../../../parts/status.tsx'
import { TextLink } from '../../../parts/text-link.tsx'
import { Time, useNow } from '../../../parts/time.tsx'
import { DISABLE_AFTER, nameOf } from '../../../parts/words/webhook-name.ts'
import { RowMenu } from './row-menu.tsx'
import { Sparkline } from './sparkline.tsx'

type Webhook = Schemas['Webhook']

interface ColumnsInput {
  activity: ReadonlyMap<string, Schemas['WebhookActivity']>
  /** The names of accounts by their ids. */
  accounts: ReadonlyMap<string, string>
  chosen: ReadonlySet<string>
  onChoose: (id: string, isChosen: boolean) => void
}

/** The columns of webhooks. */
export function useWebhookColumns({ activity, accounts, chosen, onChoose }: ColumnsInput): Column<Webhook>[] {
  const { t } = useTranslation()
  const nowMs = useNow(60_000)
  return [
    {
      label: t('webhooks.name'),
      opens: true,
      cell: (row) => (
        <Group gap="sm" wrap="nowrap" className="row-name">
          <Checkbox
            size="xs"
            aria-label={t('webhooks.choose', { name: nameOf(row) })}
            checked={chosen.has(row.document_id)}
            onChange={({ currentTarget }) => onChoose(row.document_id, currentTarget.checked)}
          />
          <Stack gap={0} miw={0}>
            <TextLink to="/webhooks/$id" params={{ id: row.document_id }} size="sm" fw={600} truncate>
              {nameOf(row)}
            </TextLink>
            <Text size="xs" c="dimmed" truncate title={row.url}>
              {row.mode === 'pull' ? t('pull.pull') : row.url}
            </Text>
          </Stack>
        </Group>
      ),
    },
    {
      id: 'state',
      label: t('webhooks.state'),
      cell: (row) => (
        <Stack gap={4} align="flex-start">
          <Status name={webhookState(row)} />
          {row.consecutive_failures > 0 && <Streak failures={row.consecutive_failures} />}
        </Stack>
      ),
    },
    {
      id: 'scope',
      label: t('webhooks.scope'),
      cell: (row) => <Scope webhook={row} accounts={accounts} activity={activity} />,
    },
    {
      id: 'day',
      label: t('webhooks.day'),
      cell: ({ document_id }) => <Sparkline activity={activity.get(document_id)} nowMs={nowMs} />,
    },
    {
      id: 'last',
      label: t('webhooks.last'),
      cell: ({ document_id }) => <Time at={activity.get(document_id)?.last_attempt_at ?? null} />,
    },
    { id: 'updated', label: t('webhooks.updated'), cell: ({ updated_at }) => <Time at={updated_at} /> },
    { label: t('webhooks.actions'), isNumber: true, cell: (row) => <RowMenu webhook={row} /> },
  ]
}

/** Whose events a webhook gets, and of how many types. */
function Scope({
  webhook: { account, document_id: id },
  accounts,
  activity,
}: Pick<ColumnsInput, 'accounts' | 'activity'> & { webhook: Webhook }) {
  const { t } = useTranslation()
  const count = activity.get(id)?.event_types
  return (
    <Stack gap={0}>
      <span className="row-account" title={account === null ? undefined : accounts.get(account)}>
        {account === null ? t('webhooks.global') : <AccountLink id={account} names={accounts} />}
      </span>
      {count !== undefined && (
        <Text size="xs" c="dimmed" className="nowrap">
          {t('catalogue.count', { count })}
        </Text>
      )}
    </Stack>
  )
}

/** How near its failures in a row bring a webhook to being disabled. */
function Streak({ failures }: { failures: number }) {
  const { t } = useTranslation()
  return (
    <Stack gap={2} miw={64}>
      <Text size="xs">{t('webhooks.streak', { failures, limit: DISABLE_AFTER })}</Text>
      <Progress
        value={(failures / DISABLE_AFTER) * 100}
        color={failures >= 15 ? 'red' : 'yellow'}
        size={4}
        aria-label={t('webhooks.failures')}
      />
    </Stack>
  )
}
