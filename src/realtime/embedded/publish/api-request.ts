import type { IncomingMessage } from 'node:http'
import {
  buildRequestText,
  isSameText,
  type RealtimeApp,
  verifyBodyDigest,
  verifySignature,
} from '../frame/signature.ts'

/** Tolerance for the clock of a publisher, in seconds. */
const TIMESTAMP_TOLERANCE_SECONDS = 600

/** Bytes of a request body: ten events of 10 KiB whose every character is escaped, and the names of their channels. */
const BODY_LIMIT_BYTES = 1024 * 1024

/** An answer of the HTTP API: an object as JSON, a text for users. */
export interface ApiAnswer {
  status: number
  body: object | string
  headers?: Record<string, string>
}

/** Builds a refusal. */
export function refuse(status: number, body: string, headers?: Record<string, string>): ApiAnswer {
  return { status, body, ...(headers && { headers }) }
}

export interface ApiTarget {
  /** As sent and signed. */
  path: string
  /** The names in lower case. */
  parameters: ReadonlyMap<string, string>
}

/** Parses path and parameters; undefined for a query in which a value with `&` could mean two parameters. */
export function readTarget(url: string): ApiTarget | undefined {
  const [path = '', query = ''] = url.split(/\?(.*)/s, 2)
  const parameters = new Map<string, string>()
  for (const pair of query.split('&')) {
    if (pair === '') continue
    const at = pair.indexOf('=')
    const name = (at === -1 ? pair : pair.slice(0, at)).toLowerCase()
    const value = at === -1 ? '' : decode(pair.slice(at + 1))
    if (!/^[a-z0-9_]+$/.test(name) || value === undefined || value.includes('&') || parameters.has(name))
      return undefined
    parameters.set(name, value)
  }
  return { path, parameters }
}

/** Decodes percent-encoding; undefined where it is broken. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The refusal of a request whose signature is not valid. It covers the digest of the body, so the body need not be read for it. */
export function findSignatureFault(
  app: RealtimeApp,
  { method, path, parameters }: ApiTarget & { method: string },
  nowMs: number,
): ApiAnswer | undefined {
  if (!isSameText(app.key, parameters.get('auth_key') ?? '')) return refuse(401, 'Unknown auth_key')
  if (parameters.get('auth_version') !== '1.0') return refuse(401, 'auth_version must be 1.0')
  const timestamp = parameters.get('auth_timestamp') ?? ''
  const nowSeconds = Math.floor(nowMs / 1000)
  const isTimely =
    /^\d{1,12}$/.test(timestamp) && Math.abs(Number(timestamp) - nowSeconds) <= TIMESTAMP_TOLERANCE_SECONDS
  if (!isTimely) return refuse(401, `auth_timestamp is more than 600 s from the server's time, ${nowSeconds}`)
  const text = buildRequestText(method, path, parameters)
  if (!verifySignature(app.secret, text, parameters.get('auth_signature') ?? ''))
    return refuse(401, 'Invalid auth_signature')
  return undefined
}

/** Reads the body of a request whose signature is valid, and compares its digest. */
export async function readBody(
  request: IncomingMessage,
  parameters: ReadonlyMap<string, string>,
): Promise<Buffer | ApiAnswer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    length += (chunk as Buffer).length
    if (length > BODY_LIMIT_BYTES) return refuse(413, 'The body is over 1 MiB', { connection: 'close' })
    chunks.push(chunk as Buffer)
  }
  const body = Buffer.concat(chunks)
  const digest = parameters.get('body_md5')
  if (body.length === 0 && digest === undefined) return body
  if (digest === undefined) return refuse(401, 'body_md5 is missing')
  return verifyBodyDigest(body, digest) ? body : refuse(401, 'body_md5 is not the MD5 of the body')
}
