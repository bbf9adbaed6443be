import { request } from 'undici'
import type { Clock } from '../../base/clock.ts'
import type { IdMaker } from '../../base/id.ts'
import { VERSION } from '../../base/version.ts'
import { buildDeliveryHeaders } from '../../delivery/post/delivery-headers.ts'
import { TOTAL_TIMEOUT_MS } from '../../outbound/send/http-sender.ts'
import { buildEnvelope } from '../../webhook/envelope/envelope.ts'
import type { EventRow } from './event-feed.ts'

/** One delivery as a webhook would receive it: the exact body, and every header (docs/contract/webhooks.md#delivery-headers). */
export interface Delivery {
  body: string
  headers: Record<string, string>
}

/** Builds the first attempt of an event, signed now with `secret`. The dispatch id is random: there is no ledger row. */
export function buildDelivery(
  deps: { clock: Pick<Clock, 'now'>; ids: IdMaker },
  row: EventRow,
  secret: string,
): Delivery {
  const attempt = 1
  const body = buildEnvelopeOf(row, attempt)
  const headers = buildDeliveryHeaders({
    userAgent: `Signalbox-Webhooks/${VERSION}`,
    secret,
    eventId: row.document_id,
    eventType: row.event,
    deliveryId: deps.ids.next<'dispatch'>(),
    attempt,
    timestampSeconds: Math.floor(deps.clock.now() / 1000),
    body,
  })
  return { body, headers }
}

function buildEnvelopeOf(row: EventRow, attempt: number): string {
  const event = {
    id: row.document_id,
    type: row.event,
    createdAt: new Date(row.created_at),
    account: row.account,
    resource: row.resource,
    action: row.action,
    resourceId: row.resource_id,
    url: row.url,
  }
  return buildEnvelope({ event, attempt })
}

/** The result of a POST. `text` is for a user: the status, or the error. */
export interface ForwardResult {
  text: string
  /** Whether it was answered with a 2xx. */
  isSuccess: boolean
  durationMs: number
}

/** Posts a delivery within `limitMs`, following no redirect (docs/contract/delivery.md#statuses). Never throws. */
export async function forwardDelivery(
  deps: { clock: Pick<Clock, 'now'> },
  delivery: Delivery,
  { url, signal, limitMs = TOTAL_TIMEOUT_MS }: { url: string; signal: AbortSignal; limitMs?: number },
): Promise<ForwardResult> {
  const startedAtMs = deps.clock.now()
  const end = (text: string, isSuccess = false) => ({ text, isSuccess, durationMs: deps.clock.now() - startedAtMs })
  try {
    const response = await request(url, {
      method: 'POST',
      headers: delivery.headers,
      body: delivery.body,
      // The signal alone limits the time.
      ...{ headersTimeout: 0, bodyTimeout: 0 },
      signal: AbortSignal.any([signal, AbortSignal.timeout(limitMs)]),
    })
    await response.body.dump()
    const { statusCode } = response
    return end(
      statusCode >= 300 && statusCode < 400 ? `${statusCode} (redirects are not followed)` : String(statusCode),
      statusCode >= 200 && statusCode < 300,
    )
  } catch (error) {
    return end(describeFailure(error as NodeJS.ErrnoException, limitMs))
  }
}

function describeFailure({ name, code, message }: NodeJS.ErrnoException, limitMs: number): string {
  if (name === 'TimeoutError') return `timeout (no answer within ${limitMs / 1000} s)`
  switch (code) {
    case 'ECONNREFUSED':
      return 'refused (does the receiver run?)'
    case 'ENOTFOUND':
      return 'unknown host'
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
      return 'untrusted certificate (name its authority in NODE_EXTRA_CA_CERTS)'
    default:
      return `failed (${code ?? message})`
  }
}
