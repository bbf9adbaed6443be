// node verify.mjs <secret> <header> [unix seconds] < body    prints "ok" or the reason (Node 16 or newer)
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync, realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const TOLERANCE_SECONDS = 300

/**
 * Returns 'ok' or the reason for refusing.
 * @param {string} secret the whole `whsec_...` string
 * @param {string} header the value of x-service-signature
 * @param {Buffer} rawBody the bytes as they arrived, never a parsed object
 * @param {number} now Unix seconds
 */
export function verify(secret, header, rawBody, now) {
  if (!/^[a-z][a-z0-9]*=[!-+\--~]+(,[a-z][a-z0-9]*=[!-+\--~]+)*$/.test(header)) return 'header_malformed'
  const parts = header.split(',').map((part) => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)])
  const times = parts.filter(([name]) => name === 't').map(([, value]) => value)
  const signatures = parts.filter(([name]) => name === 'v1').map(([, value]) => value)
  if (times.length !== 1 || !/^(0|[1-9][0-9]{0,11})$/.test(times[0])) return 'header_malformed'
  if (signatures.length === 0 || !signatures.every((hex) => /^[0-9a-f]{64}$/.test(hex))) return 'header_malformed'

  const age = now - Number(times[0])
  if (age > TOLERANCE_SECONDS) return 'timestamp_too_old'
  if (age < -TOLERANCE_SECONDS) return 'timestamp_too_new'

  const expected = createHmac('sha256', secret).update(`${times[0]}.`).update(rawBody).digest()
  const isSigned = signatures.some((hex) => timingSafeEqual(Buffer.from(hex, 'hex'), expected))
  return isSigned ? 'ok' : 'signature_mismatch'
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [secret, header, now = String(Math.floor(Date.now() / 1000))] = process.argv.slice(2)
  const result = verify(secret, header, readFileSync(0), Number(now))
  process.stdout.write(`${result}\n`)
  process.exitCode = result === 'ok' ? 0 : 1
}
