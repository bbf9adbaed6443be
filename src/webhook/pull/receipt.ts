import type { DispatchId } from '../../base/id.ts'
import { ACKNOWLEDGED, type AttemptResult } from '../../delivery/post/attempt-result.ts'
import { withoutPost } from '../../delivery/post/signed-post.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import type { EndedAttempt } from '../delivery/outcome.ts'
import { settleAttempts } from '../delivery/settle.ts'
import type { WebhookRecord } from '../registry/webhook.store.ts'
import type { ExtensionStatus, ReceiptStatus, ReturnStatus } from './pull.schema.ts'
import { extendLeases, listReceiptRows, type ReceiptRow } from './pull.store.ts'
import { loadPulling, type PullDeps } from './pull.ts'

/** Maximum time from a pull to the end of its lease, however often the lease is extended. */
export const LEASE_TOTAL_SECONDS = 3_600

export interface ReceiptRequest {
  db: Database
  id: string
  scope: PermissionScope
  receipts: readonly string[]
}

interface Receipt {
  receipt: string
  id: DispatchId
  fence: number
}

type Rows = ReadonlyMap<DispatchId, ReceiptRow>

/** The class of an attempt whose subscriber gave the delivery back. */
const RETURNED = { errorClass: 'returned' } as const

/** Ends pulled deliveries as a success (docs/contract/pull.md#acknowledgement). Throws 404, and 409 for a push. */
export function acknowledge(
  deps: PullDeps,
  request: ReceiptRequest,
): Promise<{ receipt: string; status: ReceiptStatus }[]> {
  return endLeases(deps, request, {
    ...{ result: ACKNOWLEDGED, done: 'acknowledged' },
    isDone: (row, fence) => row.isSuccess && row.fence === fence,
  })
}

/** Gives deliveries back; the next attempts are due at once (docs/contract/pull.md#giving-back). Throws alike. */
export function giveBack(
  deps: PullDeps,
  request: ReceiptRequest,
): Promise<{ receipt: string; status: ReturnStatus }[]> {
  return endLeases(deps, request, {
    ...{ result: RETURNED, done: 'returned' },
    // The end of an attempt raises the fence of a row that stays open.
    isDone: (row, fence) =>
      row.leasedUntil === null && row.lastError === RETURNED.errorClass && row.fence - fence === (row.isEnded ? 0 : 1),
  })
}

/** The webhook is locked first, so that the failure count is decided behind its lock. */
async function endLeases<Done extends string>(
  deps: PullDeps,
  { db, id, scope, receipts: texts }: ReceiptRequest,
  { result, done, isDone }: { result: AttemptResult; done: Done; isDone: (row: ReceiptRow, fence: number) => boolean },
): Promise<{ receipt: string; status: Done | 'expired' | 'not_found' }[]> {
  const receipts = texts.map(readReceipt)
  const { settled, statuses } = await inTransaction(db, async (tx) => {
    const webhook = await loadPulling({ db: tx, id, scope }, { lock: true })
    const now = new Date(deps.clock.now())
    const rows = await readRows(tx, webhook, receipts)
    const ended = receipts.flatMap((item) => {
      const row = rows.get(item.id)
      return isLeased(row, item, now) ? [endAttempt(row, { result, now, workerId: deps.workerId })] : []
    })
    // The rows are locked in this order, which is that of `extend`.
    const settled = await settleAttempts(deps, tx, ended.sort(byId))
    const recorded = settled.recorded.filter(({ isRecorded }) => isRecorded)
    const ends = new Set(recorded.map(({ attempt }) => `${attempt.id}:${attempt.fence}`))
    const judgeOne = (item: Receipt): Done | 'expired' | 'not_found' => {
      const row = rows.get(item.id)
      if (!row) return 'not_found'
      return ends.has(item.receipt) || isDone(row, item.fence) ? done : 'expired'
    }
    return { settled, statuses: receipts.map((item) => ({ receipt: item.receipt, status: judgeOne(item) })) }
  })
  deps.onSettled(settled)
  return statuses
}

/** Extends leases; `leaseUntil` is null without one (docs/contract/pull.md#extension). Throws as `acknowledge`. */
export async function extend(
  { clock }: Pick<PullDeps, 'clock'>,
  { db, id, scope, receipts: texts, leaseSeconds }: ReceiptRequest & { leaseSeconds: number },
): Promise<{ receipt: string; status: ExtensionStatus; leaseUntil: Date | null }[]> {
  const receipts = texts.map(readReceipt)
  return inTransaction(db, async (tx) => {
    const webhook = await loadPulling({ db: tx, id, scope })
    const now = new Date(clock.now())
    const rows = await readRows(tx, webhook, receipts)
    const until = new Date(now.getTime() + leaseSeconds * 1_000)
    const leased = receipts.filter((item) => isLeased(rows.get(item.id), item, now))
    const extended = await extendLeases(tx, leased, { now, until, totalSeconds: LEASE_TOTAL_SECONDS })
    const ends = new Map(extended.map((lease) => [lease.id, lease.leasedUntil]))
    return receipts.map((item) => {
      const leaseUntil = (leased.includes(item) && ends.get(item.id)) || null
      const status = leaseUntil ? 'extended' : rows.has(item.id) ? 'expired' : 'not_found'
      return { receipt: item.receipt, status, leaseUntil }
    })
  })
}

function readReceipt(receipt: string): Receipt {
  const [id = '', fence = ''] = receipt.split(':')
  return { receipt, id: id as DispatchId, fence: Number(fence) }
}

async function readRows(tx: Database, webhook: WebhookRecord, receipts: readonly Receipt[]): Promise<Rows> {
  const ids = receipts.map(({ id }) => id)
  return new Map((await listReceiptRows(tx, { webhook: webhook.id, ids })).map((row) => [row.id, row]))
}

type LeasedReceipt = ReceiptRow & { leasedUntil: Date }

/** The order of PostgreSQL: ids are lower-case hexadecimal. Pure. */
function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1
}

function isLeased(row: ReceiptRow | undefined, { fence }: Receipt, now: Date): row is LeasedReceipt {
  return row?.leasedUntil != null && row.leasedUntil > now && row.fence === fence
}

function endAttempt(
  { leasedUntil: _, isSuccess: __, lastError: ___, isEnded: ____, ...attempt }: LeasedReceipt,
  { result, now, workerId }: { result: AttemptResult; now: Date; workerId: string },
): EndedAttempt {
  const durationMs = Math.max(0, now.getTime() - attempt.startedAt.getTime())
  return { ...attempt, ...withoutPost('interrupted'), result, durationMs, workerId, traceId: null, endedAt: now }
}
