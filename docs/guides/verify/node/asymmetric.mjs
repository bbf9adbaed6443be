// node asymmetric.mjs <public key> <webhook-id> <webhook-timestamp> <webhook-signature> [unix seconds] < body
// prints "ok" or the reason (Node 16 or newer)
import { createPublicKey, verify as verifyBytes } from 'node:crypto'
import { readFileSync, realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const TOLERANCE_SECONDS = 300

/**
 * Returns 'ok' or the reason for refusing.
 * @param {string} publicKey the whole `whpk_...` string
 * @param {{ id: string, timestamp: string, signature: string }} headers webhook-id, webhook-timestamp, webhook-signature
 * @param {Buffer} rawBody the bytes as they arrived, never a parsed object
 * @param {number} now Unix seconds
 */
export function verify(publicKey, { id, timestamp, signature }, rawBody, now) {
  if (!/^[!-\-/-~]{1,256}$/.test(id) || !/^(0|[1-9][0-9]{0,11})$/.test(timestamp)) return 'header_malformed'
  const tokens = signature.split(' ')
  if (!tokens.every((token) => /^v[0-9]+[a-z]*,[A-Za-z0-9+/=_-]+$/.test(token))) return 'header_malformed'
  const signatures = tokens.filter((token) => token.startsWith('v1a,')).map((token) => token.slice(4))
  if (signatures.length === 0 || !signatures.every((text) => /^[A-Za-z0-9+/]{85}[AQgw]==$/.test(text)))
    return 'header_malformed'

  const age = now - Number(timestamp)
  if (age > TOLERANCE_SECONDS) return 'timestamp_too_old'
  if (age < -TOLERANCE_SECONDS) return 'timestamp_too_new'

  const x = Buffer.from(publicKey.slice('whpk_'.length), 'base64').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), rawBody])
  const isSigned = signatures.some((text) => verifyBytes(null, signed, key, Buffer.from(text, 'base64')))
  return isSigned ? 'ok' : 'signature_mismatch'
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [publicKey, id, timestamp, signature, now = String(Math.floor(Date.now() / 1000))] = process.argv.slice(2)
  const result = verify(publicKey, { id, timestamp, signature }, readFileSync(0), Number(now))
  process.stdout.write(`${result}\n`)
  process.exitCode = result === 'ok' ? 0 : 1
}
