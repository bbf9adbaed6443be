import { Alert, Button, Checkbox, Group, Progress, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { Schemas } from '@signalbox/client'
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useOnline } from '../../frame/use-online.ts'
import { describeLength } from '../../parts/age.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Scroll } from '../../parts/scroll/scroll.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { measureRate } from './ledger.ts'
import { useWebhookNames } from './use-webhook-names.ts'

type Preview = Schemas['ReplayPreview']
type Job = Schemas['ReplayJob']

interface BulkReplayProps {
  filters: readonly string[]
  /** Text of the button. Default: that of the filters of the ledger. */
  label?: string
  /** Name of the button, where several have the same text. */
  name?: string
  /** Sentence that says which deliveries these are. Default: those that are selected, or those of the filters. */
  lead?: string
}

/** Replays all deliveries of the filters as a job: first the counts, then the progress. */
export function BulkReplay({ filters, label, name, lead }: BulkReplayProps) {
  const { t } = useTranslation()
  const [isOpen, { open, close }] = useDisclosure(false)
  return (
    <>
      <Button variant="default" size="compact-sm" onClick={open} {...(name !== undefined && { 'aria-label': name })}>
        {label ?? t('bulk.open')}
      </Button>
      <Dialog title={t('bulk.title')} isOpen={isOpen} onClose={close}>
        {isOpen &&
          (filters.length === 0 ? (
            <Text size="sm">{t('bulk.no-filter')}</Text>
          ) : (
            <ReplayJob filters={filters} lead={lead ?? (label === undefined ? t('bulk.filtered') : t('bulk.chosen'))} />
          ))}
      </Dialog>
    </>
  )
}

function ReplayJob({ filters, lead }: { filters: readonly string[]; lead: string }) {
  const { t } = useTranslation()
  const isOnline = useOnline()
  const [isDuplicate, setIsDuplicate] = useState(false)
  const body = { filters: [...filters], confirm_duplicate: isDuplicate }
  const preview = useQuery({
    queryKey: ['bulk-replay', body],
    queryFn: ({ signal }) => api.webhook.webhookDispatchReplayAll({ body: { ...body, dry_run: true }, signal }),
    placeholderData: keepPreviousData,
  })
  const start = useMutation({ mutationFn: () => api.webhook.webhookDispatchReplayAll({ body }) })
  const started = start.data?.data
  if (started && 'document_id' in started) return <RunningJob id={started.document_id} />
  const counted = preview.data?.data
  const shown = counted && 'would_replay' in counted ? counted : undefined
  return (
    <Stack>
      <Text size="sm">{lead}</Text>
      {preview.isError && <ProblemCard error={preview.error} onRetry={() => void preview.refetch()} />}
      {shown && <Counts preview={shown} />}
      <Checkbox
        label={t('replay.confirm')}
        description={t('bulk.duplicates')}
        checked={isDuplicate}
        onChange={({ currentTarget }) => setIsDuplicate(currentTarget.checked)}
      />
      {start.isError && <ProblemCard error={start.error} />}
      <Text size="xs" c="dimmed">
        {t('bulk.pace')}
      </Text>
      <Button
        disabled={!shown?.would_replay || preview.isPlaceholderData || !isOnline}
        loading={start.isPending}
        onClick={() => start.mutate()}
      >
        {t('bulk.start')}
      </Button>
    </Stack>
  )
}

/** The numbers of a replay before it starts, in all and by webhook. */
function Counts({ preview }: { preview: Preview }) {
  const { t } = useTranslation()
  const { total, would_replay, would_skip, succeeded, to_inactive, by_webhook, webhooks } = preview
  const names = useWebhookNames(useMemo(() => by_webhook.map(({ webhook }) => webhook), [by_webhook]))
  return (
    <Stack gap="xs">
      <Text fw={600} role="status">
        {t('bulk.count', { count: total })}
      </Text>
      <Text size="sm">
        {t('bulk.outcome', { replayed: would_replay, skipped: would_skip })} {t('bulk.succeeded', { count: succeeded })}
      </Text>
      {to_inactive > 0 && (
        <Alert color="yellow" variant="outline" p="xs">
          <Text size="sm">{t('bulk.inactive', { count: to_inactive })}</Text>
        </Alert>
      )}
      {by_webhook.length > 0 && (
        <Scroll className="preview" label={t('bulk.by-webhook')}>
          <table className="table dense">
            <thead>
              <tr>
                <th scope="col">{t('deliveries.webhook')}</th>
                <th scope="col" className="end">
                  {t('deliveries.title')}
                </th>
                <th scope="col" className="end">
                  {t('bulk.arrived')}
                </th>
              </tr>
            </thead>
            <tbody>
              {by_webhook.map((row) => (
                <tr key={row.webhook}>
                  <td>
                    <TextLink to="/webhooks/$id" params={{ id: row.webhook }} size="sm">
                      {names.get(row.webhook) ?? row.webhook.slice(0, 8)}
                    </TextLink>
                    {row.is_active ? '' : ` (${t('bulk.asleep')})`}
                  </td>
                  <td className="end">{row.total}</td>
                  <td className="end">{row.succeeded}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {webhooks > by_webhook.length && (
        <Text size="xs" c="dimmed">
          {t('bulk.more-webhooks', { count: webhooks - by_webhook.length })}
        </Text>
      )}
    </Stack>
  )
}

/** Moves of a job by what it is. */
const MOVES = {
  running: ['pause', 'cancel'],
  paused: ['resume', 'cancel'],
  failed: ['resume', 'cancel'],
} as const satisfies Partial<Record<Job['status'], readonly ('pause' | 'resume' | 'cancel')[]>>

const CALLS = {
  pause: api.webhook.replayJobPause,
  resume: api.webhook.replayJobResume,
  cancel: api.webhook.replayJobCancel,
} as const

/** How far a job is, how fast it moves, and what stops it. */
function RunningJob({ id }: { id: string }) {
  const { t, i18n } = useTranslation()
  // A dialog in this dialog would close with it.
  const [isAsked, setIsAsked] = useState(false)
  const job = useQuery({
    queryKey: ['replay-job', id],
    queryFn: ({ signal }) => api.webhook.replayJobFindOne({ path: { id }, signal }),
    refetchInterval: ({ state }) => (state.data?.data.ended_at == null ? 1_000 : false),
  })
  const move = useMutation({
    mutationFn: (name: keyof typeof CALLS) => CALLS[name]({ path: { id } }),
    onSettled: () => void job.refetch(),
  })
  if (job.isError) return <ProblemCard error={job.error} onRetry={() => void job.refetch()} />
  if (!job.data) return null
  const { status, total, processed, replayed, skipped, skipped_reasons } = job.data.data
  const { perMinute, secondsLeft } = measureRate(job.data.data, Date.now())
  const moves: readonly (keyof typeof CALLS)[] = status in MOVES ? MOVES[status as keyof typeof MOVES] : []
  return (
    <Stack>
      <Progress value={total === 0 ? 100 : (processed / total) * 100} aria-label={t('bulk.progress')} />
      <Text role="status">{t('bulk.state', { processed, total, replayed, skipped })}</Text>
      <Text size="sm" c="dimmed">
        {t(`bulk.status.${status}`)} {perMinute > 0 && t('bulk.rate', { rate: perMinute })}{' '}
        {status === 'running' &&
          secondsLeft !== undefined &&
          t('bulk.left', { left: describeLength(secondsLeft, i18n.language) })}
      </Text>
      {Object.entries(skipped_reasons).map(([reason, count]) => (
        <Text key={reason} size="sm">
          {t(`skip.${reason as keyof Job['skipped_reasons']}`, { count })}
        </Text>
      ))}
      {move.isError && <ProblemCard error={move.error} />}
      {isAsked && moves.includes('cancel') ? (
        <Stack gap="xs" role="group" aria-label={t('bulk.cancel')}>
          <Text size="sm">{t('bulk.cancel-text')}</Text>
          <Group gap="xs">
            <Button variant="default" onClick={() => setIsAsked(false)}>
              {t('bulk.keep')}
            </Button>
            <Button loading={move.isPending} onClick={() => move.mutate('cancel')}>
              {t('bulk.cancel')}
            </Button>
          </Group>
        </Stack>
      ) : (
        <Group gap="xs">
          {moves.map((name) => (
            <Button
              key={name}
              variant="default"
              loading={move.isPending}
              onClick={() => (name === 'cancel' ? setIsAsked(true) : move.mutate(name))}
            >
              {t(`bulk.${name}`)}
            </Button>
          ))}
        </Group>
      )}
    </Stack>
  )
}
