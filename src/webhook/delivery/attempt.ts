import type { Clock } from '../../clock.ts'
import type { HttpSender } from '../../outbound/http-sender.ts'
import type { PostResult } from '../../outbound/post-result.ts'
import type { SigningKeys } from '../../outbound/signature.ts'
import { buildTraceHeaders, parseStoredContext } from '../../tracing/trace-context.ts'
import type { Span, Tracer } from '../../tracing/tracer.ts'
import { buildDeliveryHeaders, buildEnvelope } from '../envelope.ts'
import type { ClaimedDispatch } from './claimed-work.ts'
import { classifyResult, type ErrorClass } from './outcome.ts'
import type { SecretCache } from './secret-cache.ts'
import type { EndedAttempt } from './settle.ts'

/** What one attempt uses. */
export interface AttemptDeps {
  clock: Clock
  secrets: SecretCache
  sender: HttpSender
  workerId: string
  /** The service's version, for the `user-agent`. */
  version: string
  tracer: Tracer
  /** Runs right after the POST: crash tests end the process there. */
  onPoint?: (point: 'after-post') => void
}

/**
 * Makes one attempt of a claimed dispatch: builds the envelope, signs it afresh, posts it, and says what came of it.
 * Never throws; a webhook without a usable secret is a failed attempt like any other. `signal` interrupts the POST. The POST
 * carries the trace of its event, with a span of its own (W3C Trace Context); what is signed says nothing of it.
 */
export async function makeAttempt(
  deps: AttemptDeps,
  claimed: ClaimedDispatch,
  signal: AbortSignal,
): Promise<EndedAttempt> {
  const startedAtMs = deps.clock.now()
  const span = startSpan(deps.tracer, claimed)
  const outcome = await postSigned(deps, claimed, { startedAtMs, signal, span })
  endSpan(span, outcome)
  return {
    id: claimed.id,
    fence: claimed.fence,
    attempt: claimed.attempt,
    trigger: claimed.trigger,
    isTest: claimed.isTest,
    webhook: claimed.webhook.id,
    event: claimed.event.type,
    workerId: deps.workerId,
    traceId: span.context.traceId,
    startedAt: new Date(startedAtMs),
    endedAt: new Date(deps.clock.now()),
    ...outcome,
  }
}

/**
 * A child of the request that caused the event. What no request caused (a notice of the dispatcher, a test, an event from
 * before traces) has the event's own id as its trace, so that all its attempts, whenever they are made, are found together.
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

function endSpan(span: Span, { durationMs, result }: AttemptOutcome): void {
  const errorClass = classifyResult(result)
  span.end({
    durationMs,
    attributes: {
      ...('statusCode' in result && { 'http.response.status_code': result.statusCode }),
      ...(errorClass !== undefined && { 'error.type': errorClass }),
    },
    isError: errorClass !== undefined,
  })
}

type AttemptOutcome = Pick<EndedAttempt, 'durationMs' | 'result' | 'responseExcerpt' | 'responseHeaders' | 'timings'>

async function postSigned(
  deps: AttemptDeps,
  claimed: ClaimedDispatch,
  context: { startedAtMs: number; signal: AbortSignal; span: Span },
): Promise<AttemptOutcome> {
  const secret = openSecret(deps.secrets, claimed)
  if ('errorClass' in secret) return withoutPost(secret.errorClass)
  const body = buildEnvelope({ event: claimed.event, attempt: claimed.attempt })
  const headers = buildDeliveryHeaders({
    version: deps.version,
    secret: secret.keys,
    eventId: claimed.event.id,
    eventType: claimed.event.type,
    dispatchId: claimed.id,
    attempt: claimed.attempt,
    timestampSeconds: Math.floor(context.startedAtMs / 1000),
    body,
  })
  const result = await deps.sender.post({
    url: claimed.webhook.url,
    headers: { ...headers, ...buildTraceHeaders(context.span.context) },
    body,
    signal: context.signal,
    poolKey: claimed.webhook.id,
  })
  deps.onPoint?.('after-post')
  return toOutcome(result)
}

function openSecret(
  secrets: SecretCache,
  claimed: ClaimedDispatch,
): { keys: SigningKeys } | { errorClass: ErrorClass } {
  const sealed = claimed.webhook.secretEncrypted
  if (sealed === null) return { errorClass: 'secret_missing' }
  try {
    return { keys: secrets.open(claimed.webhook.id, sealed) }
  } catch {
    return { errorClass: 'secret_unreadable' }
  }
}

function withoutPost(errorClass: ErrorClass): AttemptOutcome {
  return { durationMs: 0, result: { errorClass }, responseExcerpt: null, responseHeaders: null, timings: null }
}

function toOutcome(result: PostResult): AttemptOutcome {
  const { durationMs, timings } = result
  if (result.outcome === 'error') return { ...withoutPost(result.errorClass), durationMs, timings }
  const { statusCode, responseExcerpt, responseHeaders } = result
  return { durationMs, timings, result: { statusCode }, responseExcerpt, responseHeaders }
}
