import type { IdMaker, WebhookId } from '../../base/id.ts'
import { beginIncidents } from '../../delivery/incident/alert.ts'
import { type Claim, nameClaim } from '../../delivery/policy.ts'
import { type EventDraft, recordEvents } from '../../event/occurrence/event.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { noteMails } from '../mail/notice.store.ts'
import { GLOBAL_WEBHOOKS, type MailKind, type MailNotice } from '../mail/notice.ts'
import { listExisting, lockFreeWebhooks, updateWebhook, type WebhookRecord } from '../registry/webhook.store.ts'
import { AUTO_DISABLE_REASON, countFailures, type EarlierEnds, orderSteps } from './failure-count.ts'
import { listWebhookIncidents } from './incident.ts'
import { decideOutcome, type EndedAttempt, type RecordedAttempt, type WebhookNotice } from './outcome.ts'
import { findEarlierEnds } from './recorded-end.store.ts'
import { type DispatchChange, deleteOrphans, settleChanges } from './settle.store.ts'

export interface SettledAttempts {
  recorded: RecordedAttempt[]
  notices: WebhookNotice[]
  /** Unrecorded results, which affect the failure count of a webhook locked by another transaction. */
  heldBack: EndedAttempt[]
}

export interface SettleDeps {
  ids: IdMaker
  workerId: string
  enableApiEventQueue: boolean
  /** Whether the service sends mails; otherwise none is noted. Default: false. */
  canSendMail?: boolean
  /** Runs inside the transaction that counts failures; crash tests kill the process there. */
  onRecording?: () => void
}

/** Event types of the service about itself. A dispatch of one causes no further one, or two webhooks would loop. */
const NOTICE_EVENTS: readonly string[] = [
  'webhook.failing',
  'webhook.auto-disable',
  'webhook.recovered',
  'webhook-dispatch.exhausted',
]

/**
 * Records ended attempts: the ledger rows, the attempt log, the webhooks' failure counts with their automatic disable,
 * the events about it, and the totals. Results without effect on a failure count, the usual case, take one statement
 * and lock no webhook; the rest takes one transaction.
 */
export async function settleAttempts(
  deps: SettleDeps,
  db: Database,
  attempts: readonly EndedAttempt[],
): Promise<SettledAttempts> {
  const decided = attempts.map((attempt) => decide(attempt, false))
  // For a failing webhook also the successes, since their order decides its count.
  const failing = new Set(
    decided.filter(({ decision }) => decision.failureCount === 'add').map(({ attempt }) => attempt.webhook),
  )
  const others = decided.filter(({ attempt }) => !failing.has(attempt.webhook))
  const options = { workerId: deps.workerId, withFailures: false }
  const { settled, deferred } = await settleChanges(db, others.map(toDispatchChange), options)
  const later = new Set(deferred.map(nameClaim))
  const now = others.filter((other) => !later.has(nameClaim(other.attempt)))
  const recorded = markRecorded(now, settled)
  const rest = attempts.filter((attempt) => failing.has(attempt.webhook) || later.has(nameClaim(attempt)))
  if (rest.length === 0) return { recorded, notices: [], heldBack: [] }
  const counted = await inTransaction(db, (tx) => settleWithFailures(deps, tx, rest))
  return { ...counted, recorded: [...recorded, ...counted.recorded] }
}

function decide(attempt: EndedAttempt, isWebhookDeleted: boolean): Decided {
  return { attempt, decision: decideOutcome({ ...attempt, attempts: attempt.attempt, isWebhookDeleted }) }
}

/** By claim, not by dispatch: of a late result and that of the next claim only one is valid. */
function markRecorded(decided: readonly Decided[], settled: readonly Claim[]): RecordedAttempt[] {
  const ended = new Set(settled.map(nameClaim))
  return decided.map((decision) => ({ ...decision, isRecorded: ended.has(nameClaim(decision.attempt)) }))
}

/**
 * Records attempts that concern the failure counts of their webhooks, which are locked first. All or nothing. It never
 * waits for a lock: an operator or a change may lock the row of one webhook, and the others continue.
 */
async function settleWithFailures(
  deps: SettleDeps,
  tx: Database,
  all: readonly EndedAttempt[],
): Promise<SettledAttempts> {
  const ids = [...new Set(all.map((item) => item.webhook))]
  const webhooks = new Map((await lockFreeWebhooks(tx, { ids })).map((row) => [row.id, row]))
  const missing = ids.filter((id) => !webhooks.has(id))
  const locked = new Set(missing.length > 0 ? await listExisting(tx, { ids: missing }) : [])
  const [heldBack, attempts] = [
    all.filter((item) => locked.has(item.webhook)),
    all.filter((item) => !locked.has(item.webhook)),
  ]
  if (attempts.length === 0) return { recorded: [], notices: [], heldBack }
  // Its webhook was purged after the routing: the row is deleted.
  await deleteOrphans(
    tx,
    attempts.filter((attempt) => !webhooks.has(attempt.webhook)).map((attempt) => attempt.id),
  )
  const decided = attempts
    .filter((attempt) => webhooks.has(attempt.webhook))
    .map((attempt) => decide(attempt, webhooks.get(attempt.webhook)?.deletedAt != null))
  const options = { workerId: deps.workerId, withFailures: true }
  const { settled } = await settleChanges(tx, decided.map(toDispatchChange), options)
  const recorded = markRecorded(decided, settled)
  const valid = recorded.filter((result) => result.isRecorded)
  const { notices, mails } = await updateFailureCounts(tx, webhooks, valid)
  const drafts = [...valid.flatMap(draftExhausted), ...notices.map(draftNotice)]
  await recordEvents(deps, tx, drafts, latestEnd(attempts))
  await beginIncidents(deps, tx, listWebhookIncidents(valid, notices), latestEnd(attempts))
  if (deps.canSendMail) await noteMails(tx, mails, latestEnd(attempts))
  deps.onRecording?.()
  return { recorded, notices, heldBack }
}

type Decided = Omit<RecordedAttempt, 'isRecorded'>

const NOTHING_EARLIER: EarlierEnds = { lastSuccessAt: null, failuresAt: [] }

function toRecordedEnd({ attempt, decision }: Decided) {
  const { id, webhook, endedAt } = attempt
  return { id, webhook, endedAt, failureCount: decision.failureCount }
}

function toDispatchChange({ attempt, decision }: Decided): DispatchChange {
  return {
    id: attempt.id,
    fence: attempt.fence,
    webhook: attempt.webhook,
    status: decision.status,
    nextAttemptAt: decision.nextAttemptAt,
    statusCode: 'statusCode' in attempt.result ? attempt.result.statusCode : null,
    errorClass: decision.lastError,
    durationMs: attempt.durationMs,
    endedAt: attempt.endedAt,
    attempt: attempt.attempt,
    trigger: attempt.trigger,
    worker: attempt.workerId,
    startedAt: attempt.startedAt,
    responseExcerpt: attempt.responseExcerpt,
    responseHeaders: attempt.responseHeaders,
    timings: attempt.timings,
  }
}

async function updateFailureCounts(
  tx: Database,
  webhooks: Map<WebhookId, WebhookRecord>,
  valid: readonly Decided[],
): Promise<{ notices: WebhookNotice[]; mails: MailNotice[] }> {
  const notices: WebhookNotice[] = []
  const mails: MailNotice[] = []
  const earlier = await findEarlierEnds(tx, valid.map(toRecordedEnd))
  for (const webhook of webhooks.values()) {
    const own = valid.filter((item) => item.attempt.webhook === webhook.id)
    if (own.length === 0) continue
    const steps = orderSteps(own.map(toRecordedEnd), earlier.get(webhook.id) ?? NOTHING_EARLIER)
    const decision = countFailures(webhook, steps)
    const { consecutiveFailures, disable } = decision
    if (consecutiveFailures === webhook.consecutiveFailures && decision.notices.length === 0) continue
    const now = latestEnd(own.map(({ attempt }) => attempt))
    const disabled = disable ? { isActived: false, disabledAt: now, disabledReason: AUTO_DISABLE_REASON } : {}
    await updateWebhook(tx, webhook.id, { consecutiveFailures, ...disabled }, now)
    mails.push(...listMails(webhook, decision.mails, own))
    if (own.some((item) => NOTICE_EVENTS.includes(item.attempt.event)) && !disable) continue
    notices.push(...decision.notices.map((event) => ({ webhook: webhook.id, event, consecutiveFailures })))
  }
  return { notices, mails }
}

/** Notices for the mails of a webhook, each with the last delivery that ended so. */
function listMails(
  { id: webhook, account: owner, isGlobal }: WebhookRecord,
  kinds: readonly MailKind[],
  ended: readonly Decided[],
): MailNotice[] {
  const account = isGlobal ? GLOBAL_WEBHOOKS : owner
  if (account === null) return []
  return kinds.map((kind) => {
    const wanted = kind === 'recovered' ? 'reset' : 'add'
    const { attempt, decision } = ended.findLast((settled) => settled.decision.failureCount === wanted) as Decided
    const lastStatusCode = 'statusCode' in attempt.result ? attempt.result.statusCode : null
    return { webhook, kind, account, dispatch: attempt.id, lastError: decision.lastError, lastStatusCode }
  })
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
  return new Date(Math.max(...attempts.map((attempt) => attempt.endedAt.getTime())))
}
