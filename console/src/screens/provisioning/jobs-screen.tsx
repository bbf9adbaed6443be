import { Button, Group, Progress, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { AskingButton } from '../../parts/asking-button.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { Page } from '../../parts/page.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { Sections } from './sections.tsx'
import { useTargetNames } from './targets.ts'

type Job = Schemas['ProvisioningJob']

/** How often running jobs are read again, ms. */
const FOLLOW_MS = 2_000

/** The moves that a state allows. */
const MOVES = {
  running: ['pause', 'cancel'],
  paused: ['resume', 'cancel'],
  failed: ['resume', 'cancel'],
  done: [],
  cancelled: [],
} as const satisfies Record<Job['status'], readonly string[]>

/** The jobs that bring targets up to date, with their progress. */
export const JobsScreen = guardScreen('provisioning-job:find-all', 'provisioning.jobs', Jobs)

function Jobs() {
  const { t } = useTranslation()
  const { target } = useSearch({ from: '/provisioning/jobs' })
  const navigate = useNavigate()
  const filters = target ? [`target|eq|${target}`] : []
  const query = { sort: '-created_at' as const, ...(filters.length > 0 && { filters }) }
  const rows = useRows<Job>({
    key: ['provisioning-jobs', filters],
    load: (page, signal) => api.provisioning.provisioningJobFindAll({ query: { ...query, ...page }, signal }),
  })
  const isRunning = rows.shown.some(({ status }) => status === 'running')
  const { refetch } = rows
  useEffect(() => {
    if (!isRunning) return
    const timer = setInterval(() => document.visibilityState === 'visible' && void refetch(), FOLLOW_MS)
    return () => clearInterval(timer)
  }, [isRunning, refetch])
  const columns = useColumns()
  const targets = useTargetNames()
  return (
    <Page
      title={t('provisioning.jobs')}
      lead={t('provisioning.jobs-lead')}
      actions={
        <ApiCall
          operation="provisioning.provisioningJobFindAll"
          method="GET"
          path="/api/v3/provisioning/job"
          query={query}
        />
      }
    >
      <Sections current="provisioning.jobs" />
      <List
        caption={t('provisioning.jobs')}
        columns={columns}
        rows={rows}
        isFiltered={filters.length > 0}
        filters={[[t('provisioning.one'), target && (targets.get(target) ?? target)]]}
        onClear={() => void navigate({ to: '/provisioning/jobs', search: {} })}
        empty={<Text size="sm">{t('provisioning.no-job')}</Text>}
      />
    </Page>
  )
}

function useColumns(): Column<Job>[] {
  const { t } = useTranslation()
  const names = useTargetNames()
  return [
    { label: t('deliveries.status'), cell: ({ status }) => <Status name={status} /> },
    { label: t('provisioning.kind'), cell: ({ kind }) => t(`provisioning.${kind}`) },
    {
      label: t('provisioning.one'),
      cell: ({ target }) => (
        <TextLink to="/provisioning/$id" params={{ id: target }} size="sm">
          {names.get(target) ?? target}
        </TextLink>
      ),
    },
    { label: t('bulk.progress'), cell: (job) => <JobProgress job={job} /> },
    {
      label: t('provisioning.queued'),
      isNumber: true,
      cell: ({ document_id, queued }) => (
        <TextLink to="/provisioning/deliveries" search={{ job: document_id }} size="sm">
          {queued}
        </TextLink>
      ),
    },
    { label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
    { label: t('catalogue.action'), cell: (job) => <Moves job={job} target={names.get(job.target) ?? job.target} /> },
  ]
}

function JobProgress({ job }: { job: Job }) {
  const { t } = useTranslation()
  const { processed, total, last_error: fault } = job
  return (
    <Stack gap={2} miw={140}>
      <Text size="xs">{t('provisioning.progress', { processed, total })}</Text>
      <Progress
        value={total === 0 ? 100 : (processed / total) * 100}
        size={6}
        aria-label={t('bulk.progress')}
        color={job.status === 'failed' ? 'red' : 'ink'}
      />
      {fault && (
        <Text size="xs" className="wrap">
          {fault}
        </Text>
      )}
    </Stack>
  )
}

function Moves({ job, target }: { job: Job; target: string }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const path = { id: job.document_id }
  const { provisioningJobPause: pause, provisioningJobResume: resume, provisioningJobCancel: cancel } = api.provisioning
  const calls = { pause, resume }
  const touches = [['provisioning-jobs']]
  const move = useChange({ make: (name: keyof typeof calls) => calls[name]({ path }), touches })
  const allowed = MOVES[job.status].filter((name) => may(`provisioning-job:${name}`))
  return (
    <Stack gap={4}>
      <Group gap={4} wrap="nowrap">
        {allowed.map((name) =>
          name === 'cancel' ? (
            <AskingButton
              key={name}
              label={t('bulk.cancel')}
              title={t('provisioning.cancel-title', { name: target })}
              text={t('provisioning.cancel-text')}
              make={() => cancel({ path })}
              touches={touches}
              size="compact-xs"
            />
          ) : (
            <Button
              key={name}
              variant="default"
              size="compact-xs"
              loading={move.isPending && move.variables === name}
              onClick={() => move.mutate(name)}
            >
              {t(`provisioning.${name}`)}
            </Button>
          ),
        )}
      </Group>
      {move.isError && <ProblemCard error={move.error} />}
    </Stack>
  )
}
