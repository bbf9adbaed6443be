import type { AttemptResult } from '../../delivery/post/attempt-result.ts'
import { REMOVAL_SHARD } from '../../webhook/delivery/delivery-count.store.ts'
import { NOTICE_TYPES } from './event-types.ts'
import type { SampleEvent } from './events.ts'
import { buildTimedIds, MINUTE_MS, type SamplePlan, type SampleRows } from './sample-plan.ts'
import { liveThrough, type SampleAttempt, type SampleDelivery, type WebhookHistory } from './webhook-history.ts'
import type { SampleWebhook } from './webhooks.ts'

/** The process that made the attempts, as the attempt log names it. */
const WORKER = 'sample:1:000000'

/** No process counts on this shard, so the counts of the sample meet no others. */
const SHARD = REMOVAL_SHARD + 1

const NOTICES: readonly string[] = NOTICE_TYPES

/** Delivers events to the webhooks that subscribe to them, then the notices about webhooks to those of operators. */
export function deliverEvents(
  plan: SamplePlan,
  { webhooks, events }: { webhooks: readonly SampleWebhook[]; events: readonly SampleEvent[] },
): { rows: SampleRows; histories: WebhookHistory[]; noticed: SampleEvent[] } {
  const isOfNotices = ({ types }: SampleWebhook) => types.every((type) => NOTICES.includes(type))
  const deliver = (some: readonly SampleWebhook[], of: readonly SampleEvent[]) =>
    some.map((webhook) => {
      const types = new Set(webhook.types)
      const own = of.filter((event) => types.has(event.type) && (!webhook.account || webhook.account === event.account))
      return liveThrough(plan, webhook, own)
    })
  const first = deliver(
    webhooks.filter((webhook) => !isOfNotices(webhook)),
    events,
  )
  const noticed = buildNoticed(plan, first)
  const histories = [...first, ...deliver(webhooks.filter(isOfNotices), noticed)]
  return { rows: buildLedger(histories), histories, noticed }
}

/** The events of notices, in their order. */
function buildNoticed(plan: SamplePlan, histories: readonly WebhookHistory[]): SampleEvent[] {
  const notices = histories.flatMap((history) => history.notices).sort((a, b) => a.at.getTime() - b.at.getTime())
  const idsAt = buildTimedIds(plan.dice)
  return notices.map(({ type, at, resourceId }) => {
    const path = type.startsWith('webhook-dispatch.') ? 'dispatch' : 'webhook'
    const url = `/api/v3/webhook/${path}/${resourceId}`
    const none = { account: undefined, contract: undefined, user: undefined }
    return { ...none, id: idsAt(at).next<'event'>(), type, at, resourceId, url }
  })
}

/** Writes the outcome of a history into the row of its webhook. */
export function noteStates(rows: SampleRows, histories: readonly WebhookHistory[]): void {
  const byId = new Map(rows.webhook?.map((row) => [row.document_id, row]))
  for (const { webhook, state } of histories) {
    const row = byId.get(webhook.id)
    if (!row || !state.changedAt) continue
    row.consecutive_failures = state.consecutiveFailures
    row.updated_at = state.changedAt
    if (!state.disabledAt) continue
    Object.assign(row, { is_actived: false, disabled_at: state.disabledAt, disabled_reason: state.disabledReason })
  }
}

/** The rows of the ledger, of its queue, of the attempt log, and the counts of minutes, as `settleChanges` leaves them. */
function buildLedger(histories: readonly WebhookHistory[]): SampleRows {
  const rows = {
    webhook_dispatch_ended: [],
    webhook_dispatch_open: [],
    webhook_attempt: [],
    webhook_queue: [],
    webhook_delivery_minute: [],
  } satisfies SampleRows as Required<Pick<SampleRows, LedgerTable>>
  const minutes = new Map<string, { minute: Date; status: string; came: number; deliveries: number }>()
  const count = (delivery: SampleDelivery, status: string, came: number, deliveries: number) => {
    const minute = new Date(Math.floor(delivery.createdAt.getTime() / MINUTE_MS) * MINUTE_MS)
    const key = `${minute.getTime()} ${status}`
    const kept = minutes.get(key) ?? { minute, status, came: 0, deliveries: 0 }
    minutes.set(key, { ...kept, came: kept.came + came, deliveries: kept.deliveries + deliveries })
  }
  for (const { webhook, deliveries, state } of histories) {
    for (const delivery of deliveries) {
      addDelivery(rows, webhook, delivery)
      const { attempts } = delivery
      count(delivery, 'pending', 1, attempts.length === 0 ? 1 : 0)
      attempts.forEach(({ decision }, place) => {
        count(delivery, decision.status, 1, place === attempts.length - 1 ? 1 : 0)
      })
    }
    const due = deliveries.flatMap(({ dueAt }) => dueAt ?? []).map((at) => at.getTime())
    if (due.length > 0)
      rows.webhook_queue.push({
        ...{ webhook: webhook.id, visit_at: new Date(Math.min(...due)), is_held: !state.isActived },
      })
  }
  rows.webhook_delivery_minute.push(...[...minutes.values()].map((minute) => ({ ...minute, shard: SHARD })))
  return rows
}

type LedgerTable =
  | 'webhook_dispatch_ended'
  | 'webhook_dispatch_open'
  | 'webhook_attempt'
  | 'webhook_queue'
  | 'webhook_delivery_minute'

function addDelivery(
  rows: Required<Pick<SampleRows, LedgerTable>>,
  { id: webhook }: SampleWebhook,
  { id, event, createdAt, attempts, dueAt }: SampleDelivery,
): void {
  const last = attempts.at(-1)
  const shared = {
    ...{ document_id: id, webhook, event: event.type, event_id: event.id, account: event.account?.id ?? null },
    ...{
      status: last?.decision.status ?? 'pending',
      attempts: attempts.length,
      last_error: last?.decision.lastError ?? null,
    },
    ...{ last_attempt_at: last?.startedAt ?? null, last_duration_ms: last?.durationMs ?? null },
    ...{ last_status_code: last ? findStatus(last.result) : null, created_at: createdAt },
    updated_at: last?.endedAt ?? createdAt,
  }
  if (dueAt) {
    rows.webhook_dispatch_open.push({ ...shared, next_attempt_at: dueAt, fence: 2 * attempts.length })
    addAttempts(rows, id, attempts)
    return
  }
  if (!last) throw new Error('a delivery that neither waits nor was attempted')
  const { responseExcerpt, responseHeaders, timings } = describeAnswer(last)
  rows.webhook_dispatch_ended.push({
    ...shared,
    ...{ ended_at: last.endedAt, fence: 2 * attempts.length - 1, worker: WORKER, response_excerpt: responseExcerpt },
    ...{ response_headers: responseHeaders, dns_ms: timings.dnsMs, connect_ms: timings.connectMs },
    ...{ tls_ms: timings.tlsMs, first_byte_ms: timings.firstByteMs, total_ms: timings.totalMs },
  })
  // The row of an ended delivery contains its last attempt.
  addAttempts(rows, id, attempts.slice(0, -1))
}

function addAttempts(
  rows: Required<Pick<SampleRows, LedgerTable>>,
  dispatch: string,
  attempts: readonly SampleAttempt[],
): void {
  attempts.forEach((attempt, place) => {
    const { responseExcerpt, responseHeaders, timings } = describeAnswer(attempt)
    rows.webhook_attempt.push({
      ...{ dispatch, attempt: place + 1, attempt_trigger: 'schedule', worker: WORKER, started_at: attempt.startedAt },
      ...{ duration_ms: attempt.durationMs, status_code: findStatus(attempt.result) },
      ...{ error_class: attempt.decision.lastError, response_excerpt: responseExcerpt },
      ...{ response_headers: responseHeaders, timings: { ...timings } },
    })
  })
}

const findStatus = (result: AttemptResult) => ('statusCode' in result ? result.statusCode : null)

/** Answer of a receiver, and duration of each stage in milliseconds. */
function describeAnswer({ result, durationMs }: SampleAttempt) {
  const stages = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: durationMs }
  if (!('statusCode' in result)) return { responseExcerpt: null, responseHeaders: null, timings: stages }
  const { statusCode } = result
  const timings = { ...stages, dnsMs: 1, connectMs: 4, tlsMs: 11, firstByteMs: Math.max(1, durationMs - 16) }
  const responseExcerpt = ANSWERS[statusCode] ?? `{"error":"${statusCode}"}`
  const type = responseExcerpt.startsWith('{') ? 'application/json' : 'text/html'
  return { responseExcerpt, responseHeaders: { 'content-type': type }, timings }
}

const ANSWERS: Readonly<Record<number, string>> = {
  200: '{"received":true}',
  202: '{"queued":true}',
  302: '<a href="/login">Found</a>',
  404: '{"error":"no such endpoint"}',
  410: '{"error":"this integration was removed"}',
  500: '{"error":"internal error"}',
  502: '<h1>502 Bad Gateway</h1>',
  503: '<h1>Service Unavailable</h1>',
}
