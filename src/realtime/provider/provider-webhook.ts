import { createHash } from 'node:crypto'
import { Problem } from '../../http/problem/problem.ts'
import type { ReportedEvent } from '../channel/channel-event.store.ts'
import { readChannelEvent } from '../channel/channel-event.ts'
import type { ProviderApp } from './provider-settings.ts'
import { isWebhookSignature } from './provider-signature.ts'

/** Tolerance for the time of a webhook: the provider repeats one for five minutes. */
const TOLERANCE_MS = 600_000

export interface ProviderWebhook {
  /** The headers `x-pusher-key` and `x-pusher-signature`. */
  key: string | null
  signature: string | null
  rawBody: Buffer
}

/** Checks key and signature of a webhook of the provider. Throws 401 `signature_invalid`. */
export function checkProviderWebhook(app: ProviderApp, { key, signature, rawBody }: ProviderWebhook): void {
  if (key === app.key && signature !== null && isWebhookSignature(app, { signature, body: rawBody })) return
  throw new Problem('signature_invalid', 'The webhook is not signed with the secret of the realtime application.')
}

/** Checks the time of a webhook, so that none is replayed later. Throws 401 `signature_invalid`. */
export function checkProviderTime(timeMs: number, now: Date): void {
  if (Math.abs(now.getTime() - timeMs) <= TOLERANCE_MS) return
  throw new Problem('signature_invalid', 'The webhook is older than ten minutes, or from the future.')
}

/** The known events of a webhook, identified by the digest of its bytes, which a repetition has too. Pure. */
export function readReports(
  body: { time_ms: number; events: readonly Readonly<Record<string, unknown>>[] },
  rawBody: Buffer,
): ReportedEvent[] {
  const origin = createHash('sha256').update(rawBody).digest('hex')
  const happenedAt = new Date(body.time_ms)
  return body.events.flatMap((given, position) => {
    const event = readChannelEvent(given)
    return event ? [{ ...event, origin, position, happenedAt }] : []
  })
}
