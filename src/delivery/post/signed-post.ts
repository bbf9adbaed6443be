import type { KeyObject } from 'node:crypto'
import type { HttpSender } from '../../outbound/send/http-sender.ts'
import type { PostResult, PostTimings } from '../../outbound/send/post-result.ts'
import type { Span } from '../../tracing/tracer.ts'
import { type AttemptResult, classifyResult, type ErrorClass } from './attempt-result.ts'
import { buildDeliveryHeaders } from './delivery-headers.ts'
import { openSealed, type SecretCache } from './secret-cache.ts'

export interface SignedPostDeps {
  secrets: SecretCache
  sender: HttpSender
  userAgent: string
  /** Runs right after the POST: crash tests kill the process there. */
  onPoint?: (point: 'after-post') => void
}

export interface PostOutcome {
  durationMs: number
  result: AttemptResult
  responseExcerpt: string | null
  responseHeaders: Record<string, string> | null
  timings: PostTimings | null
}

export interface SignedPost {
  /** The id of the receiver, to which the encryption of its secret is bound. */
  receiver: string
  url: string
  /** The encrypted secret; null while the receiver has none. */
  secretEncrypted: string | null
  /** The private key of the asymmetric signature; none for a receiver without one. */
  signingKey?: KeyObject | undefined
  /** The id that receivers deduplicate on. */
  eventId: string
  eventType: string
  deliveryId: string
  attempt: number
  startedAtMs: number
  body: string
  /** Headers beside those of the service, which win over them. */
  moreHeaders: Record<string, string>
  signal: AbortSignal
}

/**
 * Signs a body and posts it. A receiver without a usable secret is a failed attempt like any other. Rejects with an
 * `OwnFault` where this process could not post. `signal` interrupts the POST.
 */
export async function postSigned(deps: SignedPostDeps, post: SignedPost): Promise<PostOutcome> {
  const secret = openSealed(deps.secrets, post.receiver, post.secretEncrypted)
  if (secret === undefined) return withoutPost('secret_missing')
  if (secret === 'unreadable') return withoutPost('secret_unreadable')
  const { url, body, signal, signingKey, eventId, eventType, deliveryId, attempt } = post
  const headers = buildDeliveryHeaders({
    userAgent: deps.userAgent,
    secret,
    signingKey,
    eventId,
    eventType,
    deliveryId,
    attempt,
    timestampSeconds: Math.floor(post.startedAtMs / 1000),
    body,
  })
  const result = await deps.sender.post({ url, headers: { ...post.moreHeaders, ...headers }, body, signal })
  deps.onPoint?.('after-post')
  return toOutcome(result)
}

/** Attributes of a span at the end of a POST (W3C Trace Context; the names are those of OpenTelemetry). */
export function describeOutcome({ durationMs, result }: PostOutcome) {
  const errorClass = classifyResult(result)
  return {
    durationMs,
    attributes: {
      ...('statusCode' in result && { 'http.response.status_code': result.statusCode }),
      ...(errorClass !== undefined && { 'error.type': errorClass }),
    },
    isError: errorClass !== undefined,
  }
}

/** Ends the span of an attempt that was not made, and rethrows its fault. */
export function endSpan(span: Pick<Span, 'end'>): (error: unknown) => never {
  return (error) => {
    span.end({ durationMs: 0, attributes: { 'error.type': 'own_fault' }, isError: true })
    throw error
  }
}

/** The outcome of an attempt that made no POST. */
export function withoutPost(errorClass: ErrorClass): PostOutcome {
  return { durationMs: 0, result: { errorClass }, responseExcerpt: null, responseHeaders: null, timings: null }
}

function toOutcome(result: PostResult): PostOutcome {
  const { durationMs, timings } = result
  if (result.outcome === 'error') return { ...withoutPost(result.errorClass), durationMs, timings }
  const { statusCode, responseExcerpt, responseHeaders } = result
  return { durationMs, timings, result: { statusCode }, responseExcerpt, responseHeaders }
}
