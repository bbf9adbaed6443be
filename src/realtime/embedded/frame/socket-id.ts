import type { Random } from '../../../base/random.ts'

/** Two decimal numbers. Longer ones are refused: those of the service have at most 16 digits each. */
const SOCKET_ID_PATTERN = /^\d{1,20}\.\d{1,20}$/

/** Whether a value has the form of a socket id. */
export function isSocketId(value: unknown): value is string {
  return typeof value === 'string' && SOCKET_ID_PATTERN.test(value)
}

/** A new socket id with 96 random bits: unguessable, and unique over processes. */
export function makeSocketId(random: Random): string {
  const bytes = random.bytes(12)
  return `${bytes.readUIntBE(0, 6)}.${bytes.readUIntBE(6, 6)}`
}
