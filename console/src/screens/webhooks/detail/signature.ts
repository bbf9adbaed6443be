/** Fault of a signature, in the order of the checks; `valid` for none. */
export type SignatureVerdict = 'valid' | 'header' | 'secret' | 'too-old' | 'too-new' | 'other-secret-or-body'

/** How far the timestamp of a signature may be from the time of the receiver, seconds (docs/contract/webhooks.md). */
const TOLERANCE_SECONDS = 300

/** Pasted input. */
export interface SignedDelivery {
  /** `t=<seconds>,v1=<hex>`. */
  header: string
  secret: string
  body: string
}

/**
 * Says which part of a signature is wrong. Everything is computed in the browser; nothing is sent. The key is the whole
 * secret as text.
 */
export async function examine({ header, secret, body }: SignedDelivery, nowMs: number): Promise<SignatureVerdict> {
  const [, time, given] = /^\s*t=(\d{1,12}),\s*v1=([0-9a-f]{64})\s*$/i.exec(header) ?? []
  if (time === undefined || given === undefined) return 'header'
  if (!/^whsec_\S+$/.test(secret.trim())) return 'secret'
  const encoder = new TextEncoder()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret.trim()), algorithm, false, ['sign'])
  const made = new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(`${time}.${body}`)))
  const hex = [...made].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  if (hex !== given.toLowerCase()) return 'other-secret-or-body'
  const age = Math.floor(nowMs / 1000) - Number(time)
  if (age > TOLERANCE_SECONDS) return 'too-old'
  return age < -TOLERANCE_SECONDS ? 'too-new' : 'valid'
}
