import { createHmac, timingSafeEqual } from 'node:crypto'

const MAC_BYTES = 32
const LENGTH_BYTES = 4

/** Bytes that a packet has beside a single text. */
export const SEAL_BYTES = MAC_BYTES + LENGTH_BYTES

const macOf = (key: Buffer, bytes: Uint8Array) => createHmac('sha256', key).update(bytes).digest()

/**
 * Packets of texts, each behind its length, and all behind the HMAC-SHA256 of the packet: others may publish on the
 * servers. A packet has at most `limit` bytes where its texts allow it. Pure.
 */
export function sealTexts(key: Buffer, texts: readonly string[], limit: number): Buffer[] {
  const packets: Buffer[] = []
  let parts: Buffer[] = []
  let size = MAC_BYTES
  const close = () => {
    if (parts.length === 0) return
    const bytes = Buffer.concat(parts)
    packets.push(Buffer.concat([macOf(key, bytes), bytes]))
    parts = []
    size = MAC_BYTES
  }
  for (const text of texts) {
    const bytes = Buffer.from(text)
    if (size + LENGTH_BYTES + bytes.length > limit) close()
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32BE(bytes.length)
    parts.push(length, bytes)
    size += LENGTH_BYTES + bytes.length
  }
  close()
  return packets
}

/** The texts of a packet; none when none of the keys has sealed it. Pure, in time linear in the length. */
export function openTexts(keys: readonly Buffer[], packet: Uint8Array): string[] {
  if (packet.byteLength < MAC_BYTES) return []
  const [mac, rest] = [packet.subarray(0, MAC_BYTES), packet.subarray(MAC_BYTES)]
  if (!keys.some((key) => timingSafeEqual(macOf(key, rest), mac))) return []
  const bytes = Buffer.from(rest.buffer, rest.byteOffset, rest.byteLength)
  const texts: string[] = []
  for (let at = 0; at + LENGTH_BYTES <= bytes.length; ) {
    const start = at + LENGTH_BYTES
    at = start + bytes.readUInt32BE(at)
    texts.push(bytes.toString('utf8', start, at))
  }
  return texts
}
