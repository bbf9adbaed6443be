import { WebhookVerificationError } from './verification-error.ts'

/** An unparsed request body. A string stands for its UTF-8 bytes. */
export type RawBody = string | Uint8Array | ArrayBuffer

/** Whether `body` is an unparsed body. Works across realms (frames, `vm`). */
export function isRawBody(body: unknown): body is RawBody {
  return typeof body === 'string' || ArrayBuffer.isView(body) || isArrayBuffer(body)
}

/** Concatenates `prefix` and the raw body, the bytes that are signed. */
export function buildSignedBytes(prefix: string, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(prefix)
  const bytes = new Uint8Array(head.length + body.length)
  bytes.set(head)
  bytes.set(body, head.length)
  return bytes
}

/** The bytes of a raw body. Throws `body_not_raw` for a parsed object and for a body that was not passed. */
export function readRawBody(body: unknown): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body)
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
  if (isArrayBuffer(body)) return new Uint8Array(body)
  throw new WebhookVerificationError('body_not_raw', describeBody(body))
}

function describeBody(body: unknown): string {
  if (body === undefined || body === null) return 'No body was passed: it was not read, or it was read and discarded.'
  if (typeof body === 'object' && Symbol.asyncIterator in body) return 'The body is a stream that was not read yet.'
  return 'The body was already parsed: it is an object or value, not the bytes that were signed.'
}

function isArrayBuffer(value: unknown): value is ArrayBuffer {
  const tag = Object.prototype.toString.call(value)
  return tag === '[object ArrayBuffer]' || tag === '[object SharedArrayBuffer]'
}
