import { createHash } from 'node:crypto'
import type { Random } from '../../../base/random.ts'
import { encodeBase32 } from './totp.ts'

const RECOVERY_CODE_COUNT = 10

/** 80 random bits: a plain hash of a code cannot be searched. */
const CODE_BYTES = 10

/** Creates recovery codes, such as `k5dv-x2qa-7mwz-bh4c`. Shown once; only their hashes are stored. */
export function createRecoveryCodes(random: Random): string[] {
  return Array.from({ length: RECOVERY_CODE_COUNT }, () => {
    const text = encodeBase32(random.bytes(CODE_BYTES)).toLowerCase()
    return text.match(/.{4}/g)!.join('-')
  })
}

/** The hash of a typed recovery code: case, spaces and dashes do not count. Undefined for text of another form. */
export function hashRecoveryCode(text: string): Buffer | undefined {
  const plain = text.replace(/[\s-]/g, '').toLowerCase()
  if (!/^[a-z2-7]{16}$/.test(plain)) return undefined
  return createHash('sha256').update(`recovery code:${plain}`).digest()
}
