import type { Socket } from 'node:net'

/** Longest interim response that is skipped, in bytes; undici handles a longer one. */
const MAX_INTERIM_BYTES = 4_096
/** `HTTP/1.1 100` */
const STATUS_LENGTH = 12

/**
 * Removes interim (1xx) responses, except 101, from the bytes that the socket reads. RFC 9110 section 15.2 lets a client
 * discard unexpected ones, and some servers send `100 Continue` to every POST; undici 8 (client-h1.js) ends the connection
 * then. 101 stays, because it is an error here. The returned function marks the start of a response at the next bytes;
 * only that start is inspected.
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
      // Undecided: the bytes wait for the next chunk.
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

/** The bytes from the first response that is not interim; `undefined` while it is undecided. */
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
  // The first digit decides in almost all cases, without a string of the headers.
  if (bytes[from + 9] !== 0x31) return false
  return /^HTTP\/1\.[01] 1(?!01)[0-9]{2}$/.test(bytes.toString('latin1', from, from + STATUS_LENGTH))
}

/** Whether fewer bytes than a status can still become one of an interim response. */
function mayBecomeInterim(bytes: Buffer, from: number): boolean {
  const start = bytes.toString('latin1', from)
  return /^HTTP\/1\.[01] 1/.test(start) || 'HTTP/1.1 '.startsWith(start) || 'HTTP/1.0 '.startsWith(start)
}
