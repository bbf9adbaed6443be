import { hash, timingSafeEqual } from 'node:crypto'
import type { Random } from '../../base/random.ts'
import type { ClientSecret } from './client.store.ts'

/** A new secret: `sbcs_` and 32 random bytes. Only its hash is stored. */
export function createClientSecret(random: Random): { secret: string; hash: Buffer } {
  const secret = `sbcs_${random.bytes(32).toString('base64url')}`
  return { secret, hash: hashClientSecret(secret) }
}

/** The hash of a secret, as the table keeps it. 256 random bits need no slow hash. */
export function hashClientSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

/** The secrets of a client in the provider's field: a list of `<hash>.<expiry>`, in milliseconds or empty. */
export function describeSecrets(secrets: readonly ClientSecret[]): string {
  const parts = secrets.map(({ hash, expiresAt }) => `${hash.toString('base64url')}.${expiresAt?.getTime() ?? ''}`)
  return parts.length > 0 ? parts.join(',') : 'none'
}

/** The hash of `given`, if it is a described secret that has not expired; else undefined. In constant time for each. */
export function findPresentedSecret(described: string, given: string, nowMs: number): Buffer | undefined {
  const presented = hashClientSecret(given)
  let isKnown = false
  for (const part of described.split(',')) {
    const [text = '', expiry = ''] = part.split('.')
    const known = Buffer.from(text, 'base64url')
    const isSame = known.length === presented.length && timingSafeEqual(known, presented)
    if (isSame && (expiry === '' || Number(expiry) > nowMs)) isKnown = true
  }
  return isKnown ? presented : undefined
}
