import { Button, Checkbox, Progress, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ProblemCard } from '../../parts/problem.tsx'

/** Replays all deliveries of the filters as a job: first the count, then the progress. */
export function BulkReplay({ filters, label }: { filters: readonly string[]; label?: string }) {
  const { t } = useTranslation()
  const [isOpen, { open, close }] = useDisclosure(false)
  return (
    <>
      <Button variant="default" size="compact-sm" onClick={open}>
        {label ?? t('bulk.open')}
      </Button>
      <Dialog title={t('bulk.title')} isOpen={isOpen} onClose={close}>
        {isOpen && <ReplayJob filters={filters} />}
      </Dialog>
    </>
  )
}

function ReplayJob({ filters }: { filters: readonly string[] }) {
  const { t } = useTranslation()
  const [isDuplicate, setIsDuplicate] = useState(false)
  const body = { filters: [...filters], confirm_duplicate: isDuplicate }
  const preview = useQuery({
    queryKey: ['bulk-replay', body],
    queryFn: ({ signal }) => api.webhook.webhookDispatchReplayAll({ body: { ...body, dry_run: true }, signal }),
  })
  const start = useMutation({ mutationFn: () => api.webhook.webhookDispatchReplayAll({ body }) })
  const started = start.data?.data
  const jobId = started && 'document_id' in started ? started.document_id : undefined
  const job = useQuery({
    queryKey: ['replay-job', jobId],
    queryFn: ({ signal }) => api.webhook.replayJobFindOne({ path: { id: jobId ?? '' }, signal }),
    enabled: jobId !== undefined,
    refetchInterval: ({ state }) => (state.data?.data.ended_at == null ? 1_000 : false),
  })
  const cancel = useMutation({ mutationFn: (id: string) => api.webhook.replayJobCancel({ path: { id } }) })
  if (job.data) {
    const { document_id, status, total, processed, replayed, skipped, ended_at } = job.data.data
    return (
      <Stack>
        <Progress value={total === 0 ? 100 : (processed / total) * 100} aria-label={t('bulk.progress')} />
        <Text role="status">{t('bulk.state', { processed, total, replayed, skipped })}</Text>
        <Text size="sm" c="dimmed">
          {t(`bulk.status.${status}`)}
        </Text>
        {ended_at === null && (
          <Button variant="default" loading={cancel.isPending} onClick={() => cancel.mutate(document_id)}>
            {t('dialog.cancel')}
          </Button>
        )}
      </Stack>
    )
  }
  const counted = preview.data?.data
  const total = counted && 'total' in counted ? counted.total : undefined
  return (
    <Stack>
      <Text size="sm">{filters.length === 0 ? t('bulk.all') : t('bulk.filtered')}</Text>
      {preview.isError && <ProblemCard error={preview.error} onRetry={() => void preview.refetch()} />}
      {total !== undefined && (
        <Text fw={600} role="status">
          {t('bulk.count', { count: total })}
        </Text>
      )}
      <Checkbox
        label={t('replay.confirm')}
        description={t('bulk.duplicates')}
        checked={isDuplicate}
        onChange={({ currentTarget }) => setIsDuplicate(currentTarget.checked)}
      />
      {start.isError && <ProblemCard error={start.error} />}
      <Button disabled={!total} loading={start.isPending} onClick={() => start.mutate()}>
        {t('bulk.start')}
      </Button>
    </Stack>
  )
}
