import type { Envelope } from '@signalbox/webhooks'

/**
 * Called with each delivery whose signature was verified. Signalbox repeats a delivery until it is answered with 2xx within
 * 15 s, so a delivery may arrive twice: record `envelope.id` in the transaction of its effect.
 */
export function onDelivery(envelope: Envelope): void {
  console.log(`${envelope.type}  ${envelope.id}  ${envelope.data.url ?? ''}`)
}
