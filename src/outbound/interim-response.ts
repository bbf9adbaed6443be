import type { Socket } from 'node:net'

/** Longest interim response passed over, in bytes; a longer one is left to undici. */
const MAX_INTERIM_BYTES = 4_096
/** `HTTP/1.1 100` */
const STATUS_LENGTH = 12

/**
 * Takes interim (1xx) responses out of what the socket reads, all but 101. RFC 9110 section 15.2 lets a client discard them unasked, and some
 * servers send a `100 Continue` to every POST; undici 8 (client-h1.js) ends the connection there. 101 stays: it ends HTTP, so it is a fault.
 * The returned function says that a response begins with the next bytes; nothing but a response's start is looked at.
 */
export function passOverInterim(socket: Socket): () => void {
  const read = socket.read.bind(socket)
  let isAtStart = true
  let held: Buffer | undefined

  socket.read = (size?: number) => {
    const chunk = read(size) as Buffer | null
    if (chunk === null || !isAtStart) return chunk
    const bytes = held === undefined ? chunk : Buffer.concat([held, chunk])
    held = undefined
    const rest = stripInterim(bytes)
    if (rest === undefined) {
      // Not enough to tell. The bytes wait here for the next ones.
      held = bytes
      return null
    }
    isAtStart = false
    return rest
  }
  return () => {
    isAtStart = true
  }
}

/** The bytes from the first response that is not interim; `undefined` while that cannot be told. */
function stripInterim(bytes: Buffer): Buffer | undefined {
  let from = 0
  for (;;) {
    const left = bytes.length - from
    if (left < STATUS_LENGTH) return mayBecomeInterim(bytes, from) ? undefined : bytes.subarray(from)
    if (!isInterim(bytes, from)) return bytes.subarray(from)
    const end = bytes.indexOf('\r\n\r\n', from)
    if (end === -1) return left > MAX_INTERIM_BYTES ? bytes.subarray(from) : undefined
    from = end + 4
  }
}

function isInterim(bytes: Buffer, from: number): boolean {
  // The first digit decides almost always, without making a string of every response's head.
  if (bytes[from + 9] !== 0x31) return false
  return /^HTTP\/1\.[01] 1(?!01)[0-9]{2}$/.test(bytes.toString('latin1', from, from + STATUS_LENGTH))
}

/** Whether fewer bytes than a status can still become one of an interim response. */
function mayBecomeInterim(bytes: Buffer, from: number): boolean {
  const start = bytes.toString('latin1', from)
  return /^HTTP\/1\.[01] 1/.test(start) || 'HTTP/1.1 '.startsWith(start) || 'HTTP/1.0 '.startsWith(start)
}
