import { createHmac, timingSafeEqual } from 'node:crypto'

const MAC_BYTES = 32

/** Bytes that a seal adds to a text. */
export const SEAL_BYTES = MAC_BYTES

const macOf = (key: Buffer, bytes: Uint8Array) => createHmac('sha256', key).update(bytes).digest()

/** A text behind its HMAC-SHA256. Others may publish on the servers: a text without one is not taken. Pure. */
export function sealText(key: Buffer, text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([macOf(key, bytes), bytes])
}

/** The text of a sealed message; undefined when none of the keys has sealed it. Pure, in time linear in the length. */
export function openText(keys: readonly Buffer[], sealed: Uint8Array): string | undefined {
  if (sealed.byteLength < MAC_BYTES) return undefined
  const [mac, bytes] = [sealed.subarray(0, MAC_BYTES), sealed.subarray(MAC_BYTES)]
  return keys.some((key) => timingSafeEqual(macOf(key, bytes), mac)) ? Buffer.from(bytes).toString() : undefined
}
