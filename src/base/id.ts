import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

/** A UUID version 7, lower case (docs/contract/api.md#identifiers). Branded per noun, so that the compiler refuses the id of another noun. */
export type Id<Noun extends string> = string & { readonly __noun: Noun }

/** The nil UUID (RFC 9562, 5.9): no row has it, and every id comes after it. */
export const NIL_ID = '00000000-0000-0000-0000-000000000000'

export type UserId = Id<'user'>
export type AccountId = Id<'account'>
export type SessionId = Id<'session'>
export type PortalSessionId = Id<'portal session'>
export type ConnectionId = Id<'connection'>
export type WebhookId = Id<'webhook'>
export type EventTypeId = Id<'event type'>
export type EventId = Id<'event'>
export type DispatchId = Id<'dispatch'>

/** Makes ids. One maker per process; two ids made in the same millisecond keep their order (RFC 9562, method 1). */
export interface IdMaker {
  next<Noun extends string>(): Id<Noun>
}

const COUNTER_LIMIT = 0xfff

/**
 * Builds an `IdMaker` of UUID version 7 (RFC 9562 section 5.7).
 * The 12 bits after the version are a counter within the millisecond. When it overflows, or the clock steps back, the
 * maker continues from its last millisecond, so the ids of one process always increase.
 */
export function buildIdMaker(clock: Pick<Clock, 'now'>, random: Random): IdMaker {
  let lastMs = 0
  let counter = 0
  return {
    next<Noun extends string>() {
      const nowMs = clock.now()
      if (nowMs > lastMs) {
        lastMs = nowMs
        counter = 0
      } else if (counter === COUNTER_LIMIT) {
        lastMs += 1
        counter = 0
      } else {
        counter += 1
      }
      const bytes = random.bytes(16)
      bytes.writeUIntBE(lastMs, 0, 6)
      bytes[6] = 0x70 | (counter >> 8)
      bytes[7] = counter & 0xff
      bytes[8] = 0x80 | (bytes[8]! & 0x3f)
      const hex = bytes.toString('hex')
      const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
      return id as Id<Noun>
    },
  }
}

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether `text` is a UUID in lower case. Any version: older rows and other services use other versions. */
export function isUuid(text: string): boolean {
  return UUID_PATTERN.test(text)
}
