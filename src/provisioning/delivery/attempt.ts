import type { Clock } from '../../base/clock.ts'
import {
  describeOutcome,
  endSpan,
  type PostOutcome,
  postSigned,
  type SignedPostDeps,
} from '../../delivery/post/signed-post.ts'
import { buildTraceHeaders } from '../../tracing/trace-context.ts'
import type { Span, Tracer } from '../../tracing/tracer.ts'
import type { ClaimedDelivery } from '../claim/claimed-delivery.ts'
import { buildPayload } from '../claim/payload.ts'
import { type PushDeps, pushUser } from '../scim/push-user.ts'
import type { EndedDelivery } from './settle.ts'

/** Dependencies of an attempt. */
export interface DeliveryAttemptDeps extends SignedPostDeps {
  clock: Clock
  workerId: string
  tracer: Tracer
  /** Dependencies of a change at a SCIM service. */
  scim: PushDeps
}

/** Makes one attempt of a claimed delivery. Rejects with an `OwnFault` where this process could not make it. */
export async function attemptDelivery(
  deps: DeliveryAttemptDeps,
  claimed: ClaimedDelivery,
  signal: AbortSignal,
): Promise<EndedDelivery> {
  const startedAtMs = deps.clock.now()
  const span = startSpan(deps.tracer, claimed)
  const sent =
    claimed.target.protocol === 'scim'
      ? pushUser(deps.scim, claimed, { signal, headers: buildTraceHeaders(span.context) })
      : postChange(deps, claimed, { signal, span, startedAtMs })
  const outcome = await sent.catch(endSpan(span))
  if (claimed.target.protocol === 'scim') deps.onPoint?.('after-post')
  span.end(describeOutcome(outcome))
  return {
    id: claimed.id,
    fence: claimed.fence,
    attempt: claimed.attempt,
    trigger: claimed.trigger,
    target: claimed.target.id,
    generation: claimed.target.generation,
    user: claimed.change.user.id,
    type: claimed.change.type,
    workerId: deps.workerId,
    traceId: span.context.traceId,
    startedAt: new Date(startedAtMs),
    endedAt: new Date(deps.clock.now()),
    ...outcome,
  }
}

function postChange(
  deps: DeliveryAttemptDeps,
  { id, target, change, attempt }: ClaimedDelivery,
  context: { signal: AbortSignal; span: Span; startedAtMs: number },
): Promise<PostOutcome> {
  return postSigned(deps, {
    receiver: target.id,
    url: target.url,
    secretEncrypted: target.secretEncrypted,
    eventId: change.eventId,
    eventType: change.type,
    deliveryId: id,
    attempt,
    startedAtMs: context.startedAtMs,
    body: buildPayload(change, attempt),
    moreHeaders: buildTraceHeaders(context.span.context),
    signal: context.signal,
  })
}

/** The event's own id is the trace, so that all attempts of it, whenever they are made, are found together. */
function startSpan(tracer: Tracer, { id, target, change, attempt, trigger }: ClaimedDelivery): Span {
  return tracer.startSpan('provisioning.attempt', {
    kind: 'client',
    parent: undefined,
    traceId: change.eventId.replaceAll('-', ''),
    attributes: {
      'http.request.method': 'POST',
      'signalbox.event': change.type,
      'signalbox.event_id': change.eventId,
      'signalbox.target': target.id,
      'signalbox.delivery': id,
      'signalbox.attempt': attempt,
      'signalbox.trigger': trigger,
    },
  })
}
