import { createHash } from 'node:crypto'
import type { Random } from '../../../base/random.ts'
import { Problem } from '../../../http/problem/problem.ts'

/** Purpose of a link: its reader may set a new password, or proves to own the address. */
export type ProofPurpose = 'reset' | 'verification'

/** Bytes of a token of a link. */
const TOKEN_BYTES = 32

/** Creates the token of a link, of 256 bits; only its hash is stored. */
export function createProofToken(random: Random): { token: string; tokenHash: Buffer } {
  const token = random.bytes(TOKEN_BYTES).toString('base64url')
  return { token, tokenHash: hashProofToken(token) }
}

/** The hash of the token of a link, as the tables keep it. */
export function hashProofToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** 410 for a link that is unknown, used or expired: the same for all, so that it reveals nothing. */
export function buildLinkInvalid(reason: string): Problem {
  const text = 'This link is not valid: it was used, has expired, or was replaced. Ask for a new one.'
  return new Problem('link_invalid', text, { reason })
}
