import { createHash } from 'node:crypto'
import type { DispatchId } from '../../base/id.ts'
import type { AttemptResult, ErrorClass } from '../../delivery/post/attempt-result.ts'
import { AUTO_DISABLE_REASON, countFailures, type FailureState } from '../../webhook/delivery/failure-count.ts'
import { decideOutcome, type OutcomeDecision } from '../../webhook/delivery/outcome.ts'
import type { SampleEvent } from './events.ts'
import type { SamplePlan } from './sample-plan.ts'
import type { Failure, SampleWebhook } from './webhooks.ts'

/** An attempt that was made. */
export interface SampleAttempt {
  startedAt: Date
  endedAt: Date
  durationMs: number
  result: AttemptResult
  decision: OutcomeDecision
}

/** A delivery, with its attempts in their order. */
export interface SampleDelivery {
  id: DispatchId
  event: SampleEvent
  createdAt: Date
  attempts: SampleAttempt[]
  /** Due time of a waiting delivery. */
  dueAt: Date | undefined
}

/** A notice of the service about a webhook or a delivery. */
export interface SampleNotice {
  type: string
  at: Date
  resourceId: string
}

/** The month of one webhook. */
export interface WebhookHistory {
  webhook: SampleWebhook
  deliveries: SampleDelivery[]
  notices: SampleNotice[]
  state: FailureState & {
    disabledAt: Date | undefined
    disabledReason: string | undefined
    changedAt: Date | undefined
  }
}

/** From the record of an event to its first attempt, in milliseconds. */
const ROUTING_MS = 35

/** Occasional failures of a working receiver. */
const HICCUPS: readonly Failure[] = [500, 502, 503, 503, 'timeout', 'reset']

/** Duration of an attempt by its failure, in milliseconds: least and most. */
const DURATIONS: Partial<Record<ErrorClass, readonly [number, number]>> = {
  timeout: [15_000, 15_004],
  dns: [4, 40],
  connect: [1, 60],
  tls: [30, 120],
  reset: [40, 900],
  blocked_address: [1, 6],
}

/** An attempt that ends at `endMs` unless the webhook is disabled before it starts. */
interface Planned {
  delivery: SampleDelivery
  startMs: number
  endMs: number
  result: AttemptResult
}

/** Simulates a month of a webhook by the rules of the service. `events`: those it subscribes to, in order. */
export function liveThrough(plan: SamplePlan, webhook: SampleWebhook, events: readonly SampleEvent[]): WebhookHistory {
  const history: WebhookHistory = {
    ...{ webhook, deliveries: [], notices: [] },
    state: {
      ...{ isActived: webhook.rest === undefined, consecutiveFailures: 0 },
      ...{ disabledAt: undefined, disabledReason: undefined, changedAt: undefined },
    },
  }
  const failsFromMs = findFirstFailure(webhook, events)
  const planned: Planned[] = []
  const planAttempt = (delivery: SampleDelivery, startMs: number) => {
    const failure = startMs >= failsFromMs ? webhook.failure : undefined
    const result = chooseResult(plan, { failure, flakiness: webhook.flakiness, attempt: delivery.attempts.length + 1 })
    planned.push({ delivery, startMs, endMs: startMs + chooseDuration(plan, result), result })
  }
  const endUntil = (ms: number) => {
    for (let next = takeFirst(planned, ms); next; next = takeFirst(planned, ms)) endAttempt(history, next, planAttempt)
  }
  for (const event of events) {
    endUntil(event.at.getTime())
    if (!history.state.isActived) continue
    const createdAt = new Date(event.at.getTime() + ROUTING_MS)
    const delivery = { id: buildDispatchId(event.id, webhook.id), event, createdAt, attempts: [], dueAt: undefined }
    history.deliveries.push(delivery)
    planAttempt(delivery, createdAt.getTime())
  }
  endUntil(plan.now.getTime())
  // An attempt that would be in flight now is made in a minute.
  for (const { delivery, startMs } of planned) delivery.dueAt = new Date(Math.max(startMs, plan.now.getTime() + 60_000))
  return history
}

function findFirstFailure({ failure }: SampleWebhook, events: readonly SampleEvent[]): number {
  if (!failure) return Number.POSITIVE_INFINITY
  const { from } = failure
  return ('at' in from ? from.at : (events[Math.max(0, events.length - from.last)]?.at ?? new Date(0))).getTime()
}

/** Removes the first attempt that ends before `ms`. */
function takeFirst(planned: Planned[], ms: number): Planned | undefined {
  let first = -1
  for (let place = 0; place < planned.length; place++)
    if (planned[place]!.endMs <= ms && (first < 0 || planned[place]!.endMs < planned[first]!.endMs)) first = place
  return first < 0 ? undefined : planned.splice(first, 1)[0]
}

/** Records an attempt as `settle` does; deliveries to a disabled webhook wait. */
function endAttempt(
  history: WebhookHistory,
  { delivery, startMs, endMs, result }: Planned,
  planAttempt: (delivery: SampleDelivery, startMs: number) => void,
): void {
  const { webhook, state } = history
  if (state.disabledAt && startMs >= state.disabledAt.getTime()) {
    delivery.dueAt = new Date(startMs)
    return
  }
  const [startedAt, endedAt] = [new Date(startMs), new Date(endMs)]
  const decision = decideOutcome({
    ...{ trigger: 'schedule', isTest: false, attempts: delivery.attempts.length + 1, result, endedAt },
    isWebhookDeleted: false,
  })
  delivery.attempts.push({ startedAt, endedAt, durationMs: endMs - startMs, result, decision })
  if (decision.nextAttemptAt) {
    planAttempt(delivery, decision.nextAttemptAt.getTime())
    return
  }
  const isNotice = delivery.event.account === undefined
  if (decision.status === 'exhausted' && !isNotice)
    history.notices.push({ type: 'webhook-dispatch.exhausted', at: endedAt, resourceId: delivery.id })
  const before = state.consecutiveFailures
  const { consecutiveFailures, disable, notices } = countFailures(state, [decision.failureCount])
  if (consecutiveFailures === before && !disable) return
  Object.assign(state, { consecutiveFailures, changedAt: endedAt })
  if (disable) Object.assign(state, { isActived: false, disabledAt: endedAt, disabledReason: AUTO_DISABLE_REASON })
  for (const type of notices) history.notices.push({ type, at: endedAt, resourceId: webhook.id })
}

function chooseResult(
  { dice }: SamplePlan,
  { failure, flakiness, attempt }: Pick<SampleWebhook, 'failure' | 'flakiness'> & { attempt: number },
): AttemptResult {
  if (failure) return toResult(failure.kind)
  // A receiver that failed once is likely to fail again.
  if (dice.chance(attempt === 1 ? flakiness : 0.45)) return toResult(dice.pick(HICCUPS))
  return { statusCode: dice.chance(0.8) ? 200 : 202 }
}

const toResult = (kind: Failure): AttemptResult =>
  typeof kind === 'number' ? { statusCode: kind } : { errorClass: kind }

function chooseDuration({ dice }: SamplePlan, result: AttemptResult): number {
  const [least, most] = ('errorClass' in result && DURATIONS[result.errorClass]) || [35, 120]
  // One of twenty answers is slow.
  return dice.between(least, most) * (!('errorClass' in result) && dice.chance(0.05) ? dice.between(3, 12) : 1)
}

/** The id that the router gives the delivery of an event to a webhook (`src/webhook/delivery/routing.store.ts`). */
function buildDispatchId(event: string, webhook: string): DispatchId {
  const hash = createHash('md5').update(`${event}${webhook}`).digest('hex')
  return `${event.slice(0, 14)}7${event.slice(15, 18)}-8${hash.slice(0, 3)}-${hash.slice(3, 15)}` as DispatchId
}
