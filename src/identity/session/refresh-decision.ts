import { createHash, createHmac } from 'node:crypto'
import { groupAddress } from '../../http/request/address-group.ts'

/** Time in which the client that spent a token gets the same answer (docs/contract/sessions.md#repeated-refresh). */
export const REPEAT_MS = 10_000

/** Facts that decide on a presented refresh token. */
export interface PresentedToken {
  expiresAt: Date
  spentAt: Date | null
  /** `hashClient` of the client that spent it. */
  spentBy: Buffer | null
  /** Whether the session is unrevoked and unexpired, and its user active. */
  isSessionLiving: boolean
}

/** `rotate`: spend it, and issue its successor. `repeat`: issue that once more. `reused`: revoke the session tree. */
export type RefreshDecision = 'rotate' | 'repeat' | 'reused' | 'expired' | 'session_ended'

/** Decides on a presented refresh token (docs/contract/sessions.md#refresh-tokens). Pure. */
export function decideRefresh(token: PresentedToken, { client, now }: { client: Buffer; now: Date }): RefreshDecision {
  if (token.spentAt !== null) {
    const isInTime = now.getTime() - token.spentAt.getTime() < REPEAT_MS
    if (!isInTime || !token.spentBy?.equals(client)) return 'reused'
    return token.isSessionLiving ? 'repeat' : 'session_ended'
  }
  if (!token.isSessionLiving) return 'session_ended'
  return token.expiresAt <= now ? 'expired' : 'rotate'
}

/** Identifies a client by the group of its network address and its user agent. Pure. */
export function hashClient({ address, userAgent }: { address: string | null; userAgent: string | null }): Buffer {
  const group = address === null ? '' : groupAddress(address)
  return createHash('sha256')
    .update(JSON.stringify([group, userAgent]))
    .digest()
}

/** The successor of a refresh token, which is not stored: the same token, salt and key give it again. Pure. */
export function deriveSuccessor(token: string, salt: Buffer, key: Buffer): string {
  return `sbr_${createHmac('sha256', key).update(salt).update(token).digest('base64url')}`
}
