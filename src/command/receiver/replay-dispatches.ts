import { FatalError } from '../../app/fatal.ts'
import type { Clock } from '../../clock.ts'
import { type ApiClient, ApiError } from './api-client.ts'
import { DISPATCH_PATH, type DispatchRow, describeDispatch, followReplay } from './dispatch-progress.ts'

/** How long a single replay is waited for: its POST may take 15 s, and has to be picked up first. */
const REPLAY_LIMIT_MS = 30_000
/** How often a bulk replay is looked at. */
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
    print(`One POST is on its way. See what came of it at ${DISPATCH_PATH}/${row.document_id}, or replay with --wait.`)
    return
  }
  const ended = await followReplay(deps, row.document_id, REPLAY_LIMIT_MS)
  print(describeDispatch(ended))
  if (ended.status === 'success') return
  const reason = ended.last_error === null ? '' : ` (${ended.last_error})`
  throw new FatalError(
    ['pending', 'retrying'].includes(ended.status)
      ? `The replay is not posted after ${REPLAY_LIMIT_MS / 1000} s. Does a process of the service have the role dispatcher?`
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
      throw new FatalError('Its event has arrived or is on its way. Add --confirm-duplicate to post it again.')
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

/** Which rows to replay, and how. `filters` as in the list of dispatches. */
export interface ReplayManyInput {
  filters: readonly string[]
  confirmDuplicate: boolean
  dryRun: boolean
  /** The oldest so many at most. */
  limit?: number
  wait: boolean
}

/** Replays every dispatch that the filters name. With `wait`, throws a `FatalError` unless the job gets through. */
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
    print(`dry run  ${data.matched} match, ${data.would_replay} would be replayed, ${skipped}; nothing was done`)
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
    if (job.status === 'cancelled') throw new FatalError('The replay job was cancelled by somebody.')
    if (job.status === 'failed')
      throw new FatalError(
        `The replay job failed (${job.last_error ?? 'no reason given'}). POST /api/v3/webhook/replay-job/${job.document_id}/resume goes on where it stopped.`,
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
