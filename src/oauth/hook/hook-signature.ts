import { createHmac, timingSafeEqual } from 'node:crypto'
import { SIGNATURE_TOLERANCE_SECONDS } from '../../outbound/signature.ts'

/** Maximum number of signatures of one message: a sender has one for each of its secrets. */
const SIGNATURES_LIMIT = 16

const HEADER_LENGTH_LIMIT = 4096

/** The keys of `OAUTH_HOOK_SECRET`. */
export type HookKeys = readonly Buffer[]

/** The base64 of RFC 4648 section 4, with its padding. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** The keys of secrets: the base64 after `whsec_`, or of a secret without that prefix; other text is its own bytes. */
export function readHookKeys(secrets: readonly string[]): HookKeys {
  return secrets.map((secret) => {
    const text = secret.replace(/^whsec_/, '')
    return BASE64.test(text) ? Buffer.from(text, 'base64') : Buffer.from(text)
  })
}

/** Reason of a refused message. For the log. */
export type HookFault = 'header_missing' | 'header_malformed' | 'stale' | 'mismatch'

/** A message with its headers. */
export interface HookMessage {
  id: string | null
  timestamp: string | null
  signature: string | null
  body: Buffer
  now: Date
}

/**
 * Verifies a message by Standard Webhooks under any of `keys`, in constant time. One valid `v1` signature is enough.
 * Signatures are separated by spaces; Supabase Auth writes a comma before each space. Undefined when it is genuine.
 */
export function findHookFault(keys: HookKeys, message: HookMessage): HookFault | undefined {
  const { id, timestamp, signature, body, now } = message
  if (!id || !timestamp || !signature) return 'header_missing'
  if (signature.length > HEADER_LENGTH_LIMIT || !/^[0-9]{1,12}$/.test(timestamp)) return 'header_malformed'
  const given = readSignatures(signature)
  if (given.length === 0) return 'header_malformed'
  const expected = keys.map((key) => createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest())
  const fits = expected.flatMap((item) => given.map((other) => timingSafeEqual(item, other))).includes(true)
  if (!fits) return 'mismatch'
  const ageSeconds = Math.abs(Math.floor(now.getTime() / 1000) - Number(timestamp))
  return ageSeconds > SIGNATURE_TOLERANCE_SECONDS ? 'stale' : undefined
}

/** The `v1` signatures of a header, each 32 bytes; others are ignored, as the standard says. */
function readSignatures(header: string): Buffer[] {
  return header
    .split(/\s+/)
    .slice(0, SIGNATURES_LIMIT)
    .flatMap((part) => {
      const [, text] = /^v1,([A-Za-z0-9+/]{43}=),?$/.exec(part) ?? []
      return text === undefined ? [] : [Buffer.from(text, 'base64')]
    })
}
