import { type EventDraft, recordEvents } from '../event/event.ts'
import type { DispatchId, IdMaker, WebhookId } from '../id.ts'
import type { PostTimings } from '../outbound/post-result.ts'
import type { Database } from '../postgres/database.ts'
import { lockWebhooks, updateWebhook, type WebhookRecord } from '../webhook/webhook.store.ts'
import { AUTO_DISABLE_REASON, countFailures } from './failure-count.ts'
import {
  type AttemptTrigger,
  classifyResult,
  type DispatchStatus,
  decideOutcome,
  type ErrorClass,
  type OutcomeDecision,
} from './outcome.ts'
import { applyDispatchChanges, insertAttempts } from './settle.store.ts'
import { addToTotals } from './total.store.ts'

/** An attempt that came to an end. */
export interface EndedAttempt {
  id: DispatchId
  fence: number
  attempt: number
  trigger: AttemptTrigger
  isTest: boolean
  webhook: WebhookId
  /** The event type of the dispatch. */
  event: string
  workerId: string
  /** 32 hex digits; null when the attempt was lost with its process. */
  traceId: string | null
  startedAt: Date
  endedAt: Date
  durationMs: number
  result: { statusCode: number } | { errorClass: ErrorClass }
  responseExcerpt: string | null
  responseHeaders: Record<string, string> | null
  timings: PostTimings | null
}

/** What was decided over an attempt, for its log line. */
export interface RecordedAttempt {
  attempt: EndedAttempt
  decision: OutcomeDecision
  /** False when another process had claimed the dispatch meanwhile: the result was void. */
  isRecorded: boolean
}

/** A webhook that changed its standing, for the log. */
export interface WebhookNotice {
  webhook: WebhookId
  event: string
  consecutiveFailures: number
}

export interface RecordDeps {
  ids: IdMaker
  workerId: string
  enableApiEventQueue: boolean
}

/** What the service says about itself. A dispatch of one of these raises no further one, or two failing webhooks would feed each other. */
const NOTICE_EVENTS: readonly string[] = [
  'webhook.failing',
  'webhook.auto-disable',
  'webhook.recovered',
  'webhook-dispatch.exhausted',
]

/**
 * Records ended attempts in the transaction `tx`: the ledger rows, the attempt log, the webhooks' failure counts with
 * their automatic disable, the events about it, and the totals. All of it or nothing.
 */
export async function recordAttempts(
  deps: RecordDeps,
  tx: Database,
  attempts: readonly EndedAttempt[],
): Promise<{ recorded: RecordedAttempt[]; notices: WebhookNotice[] }> {
  const webhooks = await lockConcernedWebhooks(tx, attempts)
  const decided = attempts.map((attempt) => ({
    attempt,
    decision: decideOutcome({ ...attempt, attempts: attempt.attempt, isWebhookDeleted: isDeleted(webhooks, attempt) }),
  }))
  const written = await applyDispatchChanges(tx, decided.map(toDispatchChange))
  // By claim, not by dispatch: a late result and that of the next claim may come in one batch, and only one of them holds.
  const ended = new Set(written.map(nameClaim))
  const recorded = decided.map((one) => ({ ...one, isRecorded: ended.has(nameClaim(one.attempt)) }))
  const valid = recorded.filter((one) => one.isRecorded)
  await insertAttempts(tx, valid.map(toAttemptRecord))
  await addToTotals(tx, deps.workerId, countStatuses(valid))
  const notices = await updateFailureCounts(tx, webhooks, valid)
  const drafts = [...valid.flatMap(draftExhausted), ...notices.map(draftNotice)]
  await recordEvents(deps, tx, drafts, latestEnd(attempts))
  return { recorded, notices }
}

/** Names one claim of one dispatch. */
export function nameClaim(claim: Pick<EndedAttempt, 'id' | 'fence'>): string {
  return `${claim.id} ${claim.fence}`
}

/** A batch of plain successes at healthy webhooks, the usual case, locks nothing. */
async function lockConcernedWebhooks(
  tx: Database,
  attempts: readonly EndedAttempt[],
): Promise<Map<WebhookId, WebhookRecord>> {
  const failing = attempts.filter((one) => classifyResult(one.result) !== undefined).map((one) => one.webhook)
  const all = [...new Set(attempts.map((one) => one.webhook))]
  const rows = await lockWebhooks(tx, { withFailures: all, always: [...new Set(failing)] })
  return new Map(rows.map((row) => [row.id, row]))
}

function isDeleted(webhooks: Map<WebhookId, WebhookRecord>, attempt: EndedAttempt): boolean {
  return webhooks.get(attempt.webhook)?.deletedAt != null
}

type Decided = Omit<RecordedAttempt, 'isRecorded'>

function toDispatchChange({ attempt, decision }: Decided) {
  return {
    id: attempt.id,
    fence: attempt.fence,
    status: decision.status,
    nextAttemptAt: decision.nextAttemptAt,
    lastStatusCode: 'statusCode' in attempt.result ? attempt.result.statusCode : null,
    lastError: decision.lastError,
    lastDurationMs: attempt.durationMs,
    endedAt: attempt.endedAt,
  }
}

function toAttemptRecord({ attempt, decision }: Decided) {
  return {
    dispatch: attempt.id,
    attempt: attempt.attempt,
    trigger: attempt.trigger,
    worker: attempt.workerId,
    startedAt: attempt.startedAt,
    durationMs: attempt.durationMs,
    statusCode: 'statusCode' in attempt.result ? attempt.result.statusCode : null,
    errorClass: decision.lastError,
    responseExcerpt: attempt.responseExcerpt,
    responseHeaders: attempt.responseHeaders,
    timings: attempt.timings,
  }
}

function countStatuses(valid: readonly Decided[]): Partial<Record<DispatchStatus, number>> {
  const counts: Partial<Record<DispatchStatus, number>> = {}
  for (const { decision } of valid) counts[decision.status] = (counts[decision.status] ?? 0) + 1
  return counts
}

async function updateFailureCounts(
  tx: Database,
  webhooks: Map<WebhookId, WebhookRecord>,
  valid: readonly Decided[],
): Promise<WebhookNotice[]> {
  const notices: WebhookNotice[] = []
  const inOrder = [...valid].sort((a, b) => a.attempt.endedAt.getTime() - b.attempt.endedAt.getTime())
  for (const webhook of webhooks.values()) {
    const own = inOrder.filter((one) => one.attempt.webhook === webhook.id)
    const last = own.at(-1)
    if (!last) continue
    const decision = countFailures(
      webhook,
      own.map((one) => one.decision.failureCount),
    )
    const { consecutiveFailures, disable } = decision
    if (consecutiveFailures === webhook.consecutiveFailures && !disable) continue
    const now = last.attempt.endedAt
    const disabled = disable ? { isActived: false, disabledAt: now, disabledReason: AUTO_DISABLE_REASON } : {}
    await updateWebhook(tx, webhook.id, { consecutiveFailures, ...disabled }, now)
    if (own.some((one) => NOTICE_EVENTS.includes(one.attempt.event)) && !disable) continue
    notices.push(...decision.notices.map((event) => ({ webhook: webhook.id, event, consecutiveFailures })))
  }
  return notices
}

function draftNotice({ webhook, event }: WebhookNotice): EventDraft {
  const [resource = '', action = ''] = event.split('.')
  return {
    type: event,
    accountScope: 'none',
    account: null,
    resource,
    action,
    resourceId: webhook,
    url: `/api/v3/webhook/webhook/${webhook}`,
    excludedWebhook: webhook,
  }
}

function draftExhausted({ attempt, decision }: Decided): EventDraft[] {
  if (decision.status !== 'exhausted' || NOTICE_EVENTS.includes(attempt.event)) return []
  return [
    {
      type: 'webhook-dispatch.exhausted',
      accountScope: 'none',
      account: null,
      resource: 'webhook-dispatch',
      action: 'exhausted',
      resourceId: attempt.id,
      url: `/api/v3/webhook/dispatch/${attempt.id}`,
      excludedWebhook: attempt.webhook,
    },
  ]
}

function latestEnd(attempts: readonly EndedAttempt[]): Date {
  return new Date(Math.max(...attempts.map((one) => one.endedAt.getTime())))
}
