/** Fault of an asymmetric signature, in the order of the checks; `valid` for none. */
export type AsymmetricVerdict =
  | 'valid'
  | 'header'
  | 'no-v1a'
  | 'key'
  | 'former-key'
  | 'other-key-or-content'
  | 'too-old'
  | 'too-new'
  | 'unsupported'

/** How far the timestamp of a signature may be from the time of the receiver, seconds (docs/contract/webhooks.md). */
const TOLERANCE_SECONDS = 300

/** Pasted input: the values of the three headers of Standard Webhooks, the public key and the body. */
export interface AsymmetricDelivery {
  id: string
  timestamp: string
  signature: string
  publicKey: string
  body: string
}

/**
 * Says which part of an asymmetric signature is wrong. Everything is computed in the browser; nothing is sent. `formerKey`
 * is the key of the webhook before its last rotation.
 */
export async function examineAsymmetric(
  given: AsymmetricDelivery,
  nowMs: number,
  formerKey?: string | null,
): Promise<AsymmetricVerdict> {
  const [id, timestamp, signature] = [given.id.trim(), given.timestamp.trim(), given.signature.trim()]
  if (!/^[!-\-/-~]{1,256}$/.test(id) || !/^(?:0|[1-9]\d{0,11})$/.test(timestamp)) return 'header'
  const tokens = signature.split(' ')
  if (!tokens.every((token) => /^v\d+[a-z]*,[A-Za-z0-9+/=_-]+$/.test(token))) return 'header'
  const texts = tokens.filter((token) => token.startsWith('v1a,')).map((token) => token.slice(4))
  if (texts.length === 0) return 'no-v1a'
  const signatures = texts.map(decode)
  if (!signatures.every((bytes) => bytes?.length === 64)) return 'header'
  const key = readKey(given.publicKey)
  if (!key) return 'key'
  const message = new TextEncoder().encode(`${id}.${timestamp}.${given.body}`)
  const isSignedBy = async (bytes: Uint8Array<ArrayBuffer> | undefined) => {
    if (!bytes) return false
    const imported = await crypto.subtle.importKey('raw', bytes, 'Ed25519', false, ['verify'])
    const checks = signatures.map((signature) =>
      crypto.subtle.verify('Ed25519', imported, signature as BufferSource, message),
    )
    return (await Promise.all(checks)).includes(true)
  }
  try {
    if (!(await isSignedBy(key)))
      return (await isSignedBy(readKey(formerKey ?? ''))) ? 'former-key' : 'other-key-or-content'
  } catch {
    return 'unsupported'
  }
  const age = Math.floor(nowMs / 1000) - Number(timestamp)
  if (age > TOLERANCE_SECONDS) return 'too-old'
  return age < -TOLERANCE_SECONDS ? 'too-new' : 'valid'
}

function readKey(text: string): Uint8Array<ArrayBuffer> | undefined {
  const bytes = text.trim().startsWith('whpk_') ? decode(text.trim().slice('whpk_'.length)) : undefined
  return bytes?.length === 32 ? bytes : undefined
}

function decode(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
