import { FatalError } from '../../app/log/fatal.ts'
import type { Clock } from '../../base/clock.ts'
import { type ApiClient, ApiError } from './api-client.ts'
import { DISPATCH_PATH, type DispatchRow, describeDispatch, followReplay } from './dispatch-progress.ts'

/** Time limit for a single replay: 15 s for its POST, and the time until it is claimed. */
const REPLAY_LIMIT_MS = 30_000
const JOB_LOOK_MS = 1_000

export interface ReplayDeps {
  client: ApiClient
  clock: Clock
  print: (line: string) => void
}

/** Posts one dispatch once more (docs/contract/delivery.md#replay). With `wait`, throws a `FatalError` unless it ends `success`. */
export async function replayOne(
  deps: ReplayDeps,
  input: { dispatchId: string; confirmDuplicate: boolean; wait: boolean },
): Promise<void> {
  const { client, print } = deps
  const row = await requestReplay(client, input)
  if (!input.wait) {
    print(describeDispatch(row))
    print(`One POST is scheduled. Its result is at ${DISPATCH_PATH}/${row.document_id}; --wait waits for it.`)
    return
  }
  const ended = await followReplay(deps, row.document_id, REPLAY_LIMIT_MS)
  print(describeDispatch(ended))
  if (ended.status === 'success') return
  const reason = ended.last_error === null ? '' : ` (${ended.last_error})`
  throw new FatalError(
    ['pending', 'retrying'].includes(ended.status)
      ? `The replay was not posted within ${REPLAY_LIMIT_MS / 1000} s. Does a process of the service have the role dispatcher?`
      : `The replay was not delivered: the row is ${ended.status}${reason}.`,
  )
}

async function requestReplay(
  client: ApiClient,
  input: { dispatchId: string; confirmDuplicate: boolean },
): Promise<DispatchRow> {
  const body = { confirm_duplicate: input.confirmDuplicate }
  try {
    const { data } = await client.call<DispatchRow>('POST', `${DISPATCH_PATH}/${input.dispatchId}/replay`, body)
    return data
  } catch (error) {
    if (error instanceof ApiError && error.code === 'duplicate_not_confirmed')
      throw new FatalError('The event was delivered or is in flight. Add --confirm-duplicate to post it again.')
    throw error
  }
}

interface ReplayPreview {
  matched: number
  would_replay: number
  would_skip: number
  skipped_reasons: Record<string, number>
}

interface ReplayJob {
  document_id: string
  status: 'running' | 'paused' | 'done' | 'cancelled' | 'failed'
  total: number
  processed: number
  replayed: number
  skipped: number
  skipped_reasons: Record<string, number>
  last_error: string | null
}

/** The rows to replay, and the options. `filters` as in the list of dispatches. */
export interface ReplayManyInput {
  filters: readonly string[]
  confirmDuplicate: boolean
  dryRun: boolean
  /** The limit; the oldest rows come first. */
  limit?: number
  wait: boolean
}

/** Replays every dispatch that matches the filters. With `wait`, throws a `FatalError` unless the job succeeds. */
export async function replayMany(deps: ReplayDeps, input: ReplayManyInput): Promise<void> {
  const { client, print } = deps
  const body = {
    filters: input.filters,
    confirm_duplicate: input.confirmDuplicate,
    dry_run: input.dryRun,
    ...(input.limit !== undefined && { limit: input.limit }),
  }
  const { data } = await client.call<ReplayJob | ReplayPreview>('POST', `${DISPATCH_PATH}/replay`, body)
  if (!('document_id' in data)) {
    const skipped = describeSkipped(data.would_skip, data.skipped_reasons)
    print(`dry run  ${data.matched} match, ${data.would_replay} would be replayed, ${skipped}; nothing was changed`)
    return
  }
  print(`replay job  ${data.document_id}  ${data.total} dispatches`)
  if (input.wait) await followJob(deps, data)
}

async function followJob(deps: ReplayDeps, made: ReplayJob): Promise<void> {
  const { client, clock, print } = deps
  let shown = ''
  for (;;) {
    const { data: job } = await client.call<ReplayJob>('GET', `/api/v3/webhook/replay-job/${made.document_id}`)
    const line = describeJob(job)
    if (line !== shown) print(line)
    shown = line
    if (job.status === 'done') return
    if (job.status === 'cancelled') throw new FatalError('The replay job was cancelled.')
    if (job.status === 'failed')
      throw new FatalError(
        `The replay job failed (${job.last_error ?? 'no reason given'}). POST /api/v3/webhook/replay-job/${job.document_id}/resume continues it.`,
      )
    await clock.sleep(JOB_LOOK_MS)
  }
}

function describeJob(job: ReplayJob): string {
  const { status, processed, total, replayed, skipped, skipped_reasons: reasons } = job
  return `${status}  ${processed} of ${total}: ${replayed} replayed, ${describeSkipped(skipped, reasons)}`
}

function describeSkipped(count: number, reasons: Record<string, number>): string {
  const parts = Object.entries(reasons).map(([reason, number]) => `${reason} ${number}`)
  return parts.length === 0 ? `${count} skipped` : `${count} skipped (${parts.join(', ')})`
}
