import type { AccountId, DispatchId, EventId, WebhookId } from '../../src/base/id.ts'
import type { AttemptResult, ErrorClass } from '../../src/delivery/post/attempt-result.ts'
import { AUTO_DISABLE_AFTER_FAILURES } from '../../src/webhook/delivery/failure-count.ts'
import { type AttemptTrigger, type DispatchStatus, decideOutcome } from '../../src/webhook/delivery/outcome.ts'

/** A webhook as the simulation knows it. */
export interface ModelWebhook {
  id: WebhookId
  isGlobal: boolean
  account: AccountId | null
  isActive: boolean
  isDeleted: boolean
  /** Its place among all webhooks and events, as the database counted it: clocks may be set back. */
  ordinal: number
  events: readonly string[]
  url: string
  secret: string
  failures: number
  /** When its deliveries ended that count: successes, and failures. One that is replayed has not ended any more. */
  succeededAtMs: Map<DispatchId, number>
  failedAtMs: Map<DispatchId, number>
  /** The share of its POSTs that fail. */
  illness: number
  /** Whether it ever had a limit a second. */
  wasLimited: boolean
}

/** A ledger row as it must be. */
export interface ModelRow {
  id: DispatchId
  webhook: WebhookId
  eventId: EventId
  isTest: boolean
  status: DispatchStatus
  attempts: number
  nextAttemptAtMs: number | null
  trigger: AttemptTrigger
  isLeased: boolean
  wasReplayed: boolean
  /** A replay made it due before its time; the schedule goes on after that attempt. */
  keepsSchedule: boolean
}

/** An event as it is stored. */
export interface ModelEvent {
  id: EventId
  type: string
  scope: 'account' | 'none'
  account: AccountId | null
  isPurge: boolean
  excluded: WebhookId | null
  ordinal: number
}

/** One POST as the receiver saw it. */
export interface SeenPost {
  order: number
  atMs: number
  result: AttemptResult
  /** The process that made it, and whether that went down or hung before it could say what came of it. */
  process: { isLost: boolean }
}

/** An entry of the attempt log. */
export interface LogEntry {
  dispatch: DispatchId
  attempt: number
  trigger: AttemptTrigger
  statusCode: number | null
  errorClass: ErrorClass | null
  /** When a lost attempt was taken back; null when that cannot be seen any more. */
  takenBackAtMs: number | null
}

/** The time that the POSTs of one step take at most. */
const STEP_MS = 10_000

/** State that the contract requires; the service is compared with it after each step. */
export interface Model {
  webhooks: Map<WebhookId, ModelWebhook>
  rows: Map<DispatchId, ModelRow>
  posts: Map<string, SeenPost>
  totals: Map<DispatchStatus, number>
  disables: number
  /** Rows that ever were. */
  histories: number
}

/** Builds an empty model. */
export function buildModel(): Model {
  return { webhooks: new Map(), rows: new Map(), posts: new Map(), totals: new Map(), disables: 0, histories: 0 }
}

/** Counts a delivery that came into a status. */
export function countStatus(model: Model, status: DispatchStatus, by = 1): void {
  if (by > 0) model.totals.set(status, (model.totals.get(status) ?? 0) + by)
}

/** The webhooks that an event goes to, by the routing rules of the contract, written down a second time. */
export function listRecipients(model: Model, event: ModelEvent): WebhookId[] {
  const matches = (webhook: ModelWebhook) =>
    webhook.isGlobal || (!event.isPurge && event.scope === 'account' && event.account === webhook.account)
  return [...model.webhooks.values()]
    .filter(
      (webhook) =>
        webhook.isActive && !webhook.isDeleted && webhook.events.includes(event.type) && webhook.id !== event.excluded,
    )
    .filter((webhook) => webhook.ordinal <= event.ordinal && matches(webhook))
    .map((webhook) => webhook.id)
}

/** A new ledger row. */
export function addRow(
  model: Model,
  row: Pick<ModelRow, 'id' | 'webhook' | 'eventId' | 'isTest'>,
  nowMs: number,
): void {
  const trigger = row.isTest ? 'test' : 'schedule'
  const fresh = {
    status: 'pending',
    attempts: 0,
    nextAttemptAtMs: nowMs,
    isLeased: false,
    wasReplayed: false,
    keepsSchedule: false,
  } as const
  model.rows.set(row.id, { ...row, ...fresh, trigger })
  model.histories += 1
  countStatus(model, 'pending')
}

/**
 * Applies what the service says it recorded, and returns what is wrong with it. Lost attempts are recorded before anything
 * else of the step that ends at `nowMs`.
 */
export function applyLog(model: Model, entries: readonly LogEntry[], nowMs: number): string[] {
  const faults: string[] = []
  const orderOf = (entry: LogEntry) =>
    entry.errorClass === 'interrupted' ? entry.attempt / 1e6 : 1 + (findPost(model, entry)?.order ?? 0)
  for (const entry of [...entries].sort((a, b) => orderOf(a) - orderOf(b))) {
    const row = model.rows.get(entry.dispatch)
    if (!row) {
      faults.push(`attempt ${entry.attempt} of a row that is not known: ${entry.dispatch}`)
      continue
    }
    const post = findPost(model, entry)
    faults.push(...classifyEntry(row, entry, post))
    const isInterrupted = entry.errorClass === 'interrupted'
    const takenBackAtMs = entry.takenBackAtMs ?? nowMs
    if (isInterrupted && (takenBackAtMs > nowMs || takenBackAtMs < nowMs - STEP_MS))
      faults.push(`${entry.dispatch} attempt ${entry.attempt}: taken back at ${takenBackAtMs}, not before ${nowMs}`)
    const endedAtMs = isInterrupted || !post ? takenBackAtMs : post.atMs
    const result: AttemptResult = isInterrupted || !post ? { errorClass: 'interrupted' } : post.result
    advanceRow(model, row, { attempt: entry.attempt, result, endedAtMs })
  }
  return faults
}

function findPost(model: Model, entry: LogEntry): SeenPost | undefined {
  return model.posts.get(`${entry.dispatch} ${entry.attempt}`)
}

function classifyEntry(row: ModelRow, entry: LogEntry, post: SeenPost | undefined): string[] {
  const faults: string[] = []
  const name = `${entry.dispatch} attempt ${entry.attempt}`
  if (entry.attempt !== row.attempts + 1) faults.push(`${name}: follows attempt ${row.attempts}`)
  if (entry.trigger !== row.trigger) faults.push(`${name}: asked for by ${entry.trigger}, not by ${row.trigger}`)
  if (entry.attempt > 5 && !row.wasReplayed) faults.push(`${name}: a sixth POST without a replay`)
  if (entry.errorClass === 'interrupted') {
    if (post && !post.process.isLost) faults.push(`${name}: recorded as interrupted by a process that lived`)
    return faults
  }
  if (!post) return [...faults, `${name}: recorded, and no receiver saw it`]
  const seen =
    'errorClass' in post.result ? post.result.errorClass : 'statusCode' in post.result && post.result.statusCode
  if (seen !== (entry.statusCode ?? entry.errorClass)) faults.push(`${name}: was ${seen}, recorded ${entry.statusCode}`)
  return faults
}

function advanceRow(
  model: Model,
  row: ModelRow,
  ended: { attempt: number; result: AttemptResult; endedAtMs: number },
): void {
  const webhook = model.webhooks.get(row.webhook)
  if (!webhook) return
  const decision = decideOutcome({
    trigger: row.trigger,
    isTest: row.isTest,
    keepsSchedule: row.keepsSchedule,
    attempts: ended.attempt,
    result: ended.result,
    endedAt: new Date(ended.endedAtMs),
    isWebhookDeleted: webhook.isDeleted,
  })
  row.status = decision.status
  row.attempts = ended.attempt
  row.nextAttemptAtMs = decision.nextAttemptAt?.getTime() ?? null
  row.isLeased = false
  if (row.trigger === 'test' || (row.keepsSchedule && decision.status === 'retrying')) row.trigger = 'schedule'
  row.keepsSchedule = false
  countStatus(model, decision.status)
  countEnd(webhook, row.id, { kind: decision.failureCount, atMs: ended.endedAtMs })
  if (webhook.isActive && webhook.failures >= AUTO_DISABLE_AFTER_FAILURES) {
    webhook.isActive = false
    model.disables += 1
  }
}

/** Counts the failures since the last success, in the order in which deliveries ended. */
function countEnd(
  webhook: ModelWebhook,
  id: DispatchId,
  { kind, atMs }: { kind: 'reset' | 'add' | 'keep'; atMs: number },
): void {
  const isLater = (other: number) => other > atMs
  if (kind === 'reset') {
    webhook.succeededAtMs.set(id, atMs)
    webhook.failures = Math.min(webhook.failures, [...webhook.failedAtMs.values()].filter(isLater).length)
  }
  if (kind === 'add') {
    webhook.failedAtMs.set(id, atMs)
    if (![...webhook.succeededAtMs.values()].some(isLater)) webhook.failures += 1
  }
}
