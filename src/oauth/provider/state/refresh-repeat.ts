import { hash } from 'node:crypto'
import type { KoaContextWithOIDC } from 'oidc-provider'
import type { Clock } from '../../../base/clock.ts'
import type { Keyring } from '../../../base/keyring.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { thumbprint } from '../../signing-key/signing-key.ts'
import { findRequestState } from './request-state.ts'
import { type FoundState, findRefreshAnswer } from './state.store.ts'

/** The rules for a reused refresh token. */
export interface RefreshRules {
  /** Time in which the same client gets the first answer again. 0: never, every reuse revokes the family. */
  repeatMs: number
}

/** Grace for a repeat in time that is read a moment later. */
const MARGIN_MS = 3_000

/** Marks a request as the repeat of a redemption. */
export function markRepeat(ctx: KoaContextWithOIDC, idHash: Buffer): void {
  const state = findRequestState(ctx)
  if (state) state.repeatOf = idHash
}

/**
 * A hash of the client that redeems a refresh token. A confidential client has proved itself by its secret, and a bound
 * one by its DPoP key; of any other client the network address has to be the same.
 */
export function bindRefresh(ctx: KoaContextWithOIDC): Buffer {
  const client = ctx.oidc.client
  const isPublic = client?.tokenEndpointAuthMethod === 'none'
  const key = readProofKey(ctx.get('dpop'))
  const parts = [client?.clientId, key ?? (isPublic ? `address ${ctx.ip}` : 'authenticated')]
  return hash('sha256', parts.join('\n'), 'buffer')
}

/** The thumbprint of the key of a DPoP proof. The provider has checked its signature before it looks for a token. */
function readProofKey(proof: string): string | undefined {
  if (proof === '') return undefined
  try {
    const { jwk } = JSON.parse(Buffer.from(proof.split('.')[0] ?? '', 'base64url').toString())
    return `key ${thumbprint(jwk)}`
  } catch {
    return undefined
  }
}

/** Whether a request repeats, within the time of the rules, the redemption that spent a refresh token. */
export function isRefreshRepeat(
  { refresh, machineClock }: { refresh: RefreshRules; machineClock: Pick<Clock, 'now'> },
  found: FoundState,
  ctx: KoaContextWithOIDC,
): boolean {
  if (!found.consumedAt || !found.consumedBy || ctx.oidc?.route !== 'token') return false
  if (found.payload.clientId !== ctx.oidc.client?.clientId) return false
  if (machineClock.now() - found.consumedAt.getTime() >= refresh.repeatMs) return false
  return found.consumedBy.equals(bindRefresh(ctx))
}

const contextOf = (idHash: Buffer) => `oauth-refresh:${idHash.toString('hex')}`

/** Encrypts the answer to a redemption, for the row of the spent token. */
export function sealAnswer({ keyring }: { keyring: Keyring }, idHash: Buffer, body: unknown): string {
  return keyring.seal(JSON.stringify(body), contextOf(idHash))
}

/**
 * Answers the repeat of a redemption with the first answer (docs/contract/oauth.md#refresh-tokens): a client that lost
 * the answer continues with the same successor, and there is never a second one. The answer is stored encrypted for a
 * short time.
 */
export async function answerRepeat(
  {
    db,
    keyring,
    machineClock,
    refresh,
  }: { db: Database; keyring: Keyring; machineClock: Clock; refresh: RefreshRules },
  ctx: KoaContextWithOIDC,
  spent: Buffer,
): Promise<void> {
  const since = new Date(machineClock.now() - refresh.repeatMs - MARGIN_MS)
  const answer = await findRefreshAnswer(db, { idHash: spent, since })
  if (answer === undefined) return
  ctx.status = 200
  ctx.body = JSON.parse(keyring.open(answer, contextOf(spent)))
}
