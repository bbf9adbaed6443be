import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { hideEchoed } from '../../delivery/post/echoed-headers.ts'
import { openSealed, type SealedCache } from '../../delivery/post/secret-cache.ts'
import {
  describeOutcome,
  endSpan,
  type PostOutcome,
  postSigned,
  type SignedPostDeps,
  withoutPost,
} from '../../delivery/post/signed-post.ts'
import { buildTraceHeaders, parseStoredContext } from '../../tracing/trace-context.ts'
import type { Span, Tracer } from '../../tracing/tracer.ts'
import { buildEnvelope } from '../envelope/envelope.ts'
import type { OwnHeaders } from '../registry/own-headers.ts'
import type { ClaimedDispatch } from './claimed-work.ts'
import type { EndedAttempt } from './outcome.ts'

export interface AttemptDeps extends SignedPostDeps {
  clock: Clock
  workerId: string
  tracer: Tracer
  headers: SealedCache<OwnHeaders>
  /** The private keys of asymmetric signatures. */
  signingKeys: SealedCache<KeyObject>
}

/**
 * Makes one attempt of a claimed dispatch: builds the envelope, signs and posts it, and returns the result. A webhook
 * without a usable secret is a failed attempt like any other. Rejects with an `OwnFault` where this process could not
 * post. `signal` interrupts the POST, which carries the trace of its event, with a span of its own (W3C Trace Context);
 * the signed body does not contain it.
 */
export async function makeAttempt(
  deps: AttemptDeps,
  claimed: ClaimedDispatch,
  signal: AbortSignal,
): Promise<EndedAttempt> {
  const startedAtMs = deps.clock.now()
  const span = startSpan(deps.tracer, claimed)
  const { webhook, event, attempt } = claimed
  const outcome = await post(deps, claimed, { startedAtMs, span, signal }).catch(endSpan(span))
  span.end(describeOutcome(outcome))
  return {
    id: claimed.id,
    fence: claimed.fence,
    attempt,
    trigger: claimed.trigger,
    isTest: claimed.isTest,
    keepsSchedule: claimed.keepsSchedule,
    webhook: webhook.id,
    event: event.type,
    workerId: deps.workerId,
    traceId: span.context.traceId,
    startedAt: new Date(startedAtMs),
    endedAt: new Date(deps.clock.now()),
    ...outcome,
  }
}

/** Posts with the subscriber's headers. Headers or a private key that do not open are a failure. */
async function post(
  deps: AttemptDeps,
  { id, webhook, event, attempt }: ClaimedDispatch,
  { startedAtMs, span, signal }: { startedAtMs: number; span: Span; signal: AbortSignal },
): Promise<PostOutcome> {
  const own = openSealed(deps.headers, webhook.id, webhook.headersEncrypted)
  const signingKey = openSealed(deps.signingKeys, webhook.id, webhook.signingKeyEncrypted)
  if (own === 'unreadable' || signingKey === 'unreadable') return withoutPost('secret_unreadable')
  const traceHeaders = buildTraceHeaders(span.context)
  const outcome = await postSigned(deps, {
    receiver: webhook.id,
    url: webhook.url,
    secretEncrypted: webhook.secretEncrypted,
    signingKey,
    eventId: event.id,
    eventType: event.type,
    deliveryId: id,
    attempt,
    startedAtMs,
    body: buildEnvelope({ event, attempt }),
    moreHeaders: own ? { ...own, ...traceHeaders } : traceHeaders,
    signal,
  })
  return own ? hideEchoed(outcome, own) : outcome
}

/**
 * A child of the request that caused the event. Without a request (a notice of the dispatcher, a test, an event from
 * before traces) the trace id is the event's id, so that all its attempts share a trace.
 */
function startSpan(tracer: Tracer, { event, webhook, id, attempt, trigger }: ClaimedDispatch): Span {
  return tracer.startSpan('webhook.attempt', {
    kind: 'client',
    parent: event.trace === null ? undefined : parseStoredContext(event.trace),
    traceId: event.id.replaceAll('-', ''),
    attributes: {
      'http.request.method': 'POST',
      'signalbox.event': event.type,
      'signalbox.event_id': event.id,
      'signalbox.webhook': webhook.id,
      'signalbox.dispatch': id,
      'signalbox.attempt': attempt,
      'signalbox.trigger': trigger,
    },
  })
}
