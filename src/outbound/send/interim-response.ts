import type { Socket } from 'node:net'

/** Limits of skipped interim responses, and of their bytes, before one answer. */
const MAX_INTERIM_RESPONSES = 100
const MAX_INTERIM_BYTES = 65_536
/**
 * Bytes of one answer with its framing. Readers of bodies have far lower limits; this one bounds chunk extensions and
 * trailers.
 */
const MAX_ANSWER_BYTES = 2_097_152
/** `HTTP/1.1 100` */
const STATUS_LENGTH = 12
const HEAD_END = Buffer.from('\r\n\r\n')
const CR = 0x0d

/** An answer that does not end. `code` is a constant for the ledger. */
export class AnswerFloodError extends Error {
  readonly code: 'INTERIM_FLOOD' | 'ANSWER_FLOOD'
  constructor(code: AnswerFloodError['code']) {
    super(`the answer was ended: ${code}`)
    this.name = 'AnswerFloodError'
    this.code = code
  }
}

interface Scan {
  /** `start`: fewer bytes than a status were read. `interim`: inside an interim response. `final`: all else. */
  phase: 'start' | 'interim' | 'final'
  /** The bytes of `start`. */
  held: Buffer
  /** Bytes of `HEAD_END` that the last bytes matched. */
  matched: number
  interimResponses: number
  interimBytes: number
  answerBytes: number
}

function startScan(): Scan {
  return { phase: 'start', held: Buffer.alloc(0), matched: 0, interimResponses: 0, interimBytes: 0, answerBytes: 0 }
}

/**
 * Removes interim (1xx) responses, except 101, from the bytes that the socket reads. RFC 9110 section 15.2 lets a
 * client discard unexpected ones, and some servers send `100 Continue` to every POST; undici 8 (client-h1.js) ends the
 * connection then. 101 stays, because it is an error here. Each byte is inspected once and not stored; over the limits
 * the socket is destroyed with an `AnswerFloodError`. The returned function marks the start of a response at the next
 * bytes; only that start is inspected.
 */
export function passOverInterim(socket: Socket): () => void {
  const read = socket.read.bind(socket)
  let scan = startScan()

  socket.read = (size?: number) => {
    for (;;) {
      const chunk = read(size) as Buffer | null
      if (chunk === null) return null
      scan.answerBytes += chunk.length
      const rest = scan.phase === 'final' ? chunk : passOver(scan, chunk)
      const flood = findFlood(scan)
      if (flood !== undefined) {
        socket.destroy(new AnswerFloodError(flood))
        return null
      }
      if (rest !== undefined) return rest
    }
  }
  return () => {
    scan = startScan()
  }
}

function findFlood(scan: Scan): AnswerFloodError['code'] | undefined {
  if (scan.interimResponses > MAX_INTERIM_RESPONSES || scan.interimBytes > MAX_INTERIM_BYTES) return 'INTERIM_FLOOD'
  return scan.answerBytes > MAX_ANSWER_BYTES ? 'ANSWER_FLOOD' : undefined
}

/** The bytes from the first response that is not interim; `undefined` while it has not begun. */
function passOver(scan: Scan, chunk: Buffer): Buffer | undefined {
  const bytes = scan.held.length === 0 ? chunk : Buffer.concat([scan.held, chunk])
  scan.held = scan.held.subarray(0, 0)
  let at = 0
  while (findFlood(scan) === undefined) {
    if (scan.phase === 'interim') {
      const end = findHeadEnd(scan, bytes, at)
      scan.interimBytes += (end ?? bytes.length) - at
      if (end === undefined) return undefined
      at = end
      scan.phase = 'start'
    }
    if (bytes.length - at < STATUS_LENGTH && mayBecomeInterim(bytes, at)) {
      // A copy, so that the rest of the chunk is not kept.
      scan.held = Buffer.from(bytes.subarray(at))
      return undefined
    }
    if (!isInterim(bytes, at)) {
      scan.phase = 'final'
      return bytes.subarray(at)
    }
    scan.phase = 'interim'
    scan.interimResponses += 1
  }
  return undefined
}

/** The index behind the end of a head; `undefined` when it does not end in these bytes. */
function findHeadEnd(scan: Scan, bytes: Buffer, from: number): number | undefined {
  for (let at = from; at < bytes.length; at += 1) {
    if (bytes[at] === HEAD_END[scan.matched]) scan.matched += 1
    else scan.matched = bytes[at] === CR ? 1 : 0
    if (scan.matched < HEAD_END.length) continue
    scan.matched = 0
    return at + 1
  }
  return undefined
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
