import { createHash } from 'node:crypto'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Clock } from '../../clock.ts'
import type { Keyring } from '../../keyring.ts'
import type { Database } from '../../postgres/database.ts'
import { thumbprint } from '../signing-key.ts'
import { type FoundState, findRefreshAnswer, keepRefreshAnswer } from './state.store.ts'
import { hashStateId } from './state-id.ts'

/** The rules for a refresh token that is used again. */
export interface RefreshRules {
  /** For how long the same client gets the first answer again. 0: never, every second use ends the family. */
  repeatMs: number
}

/** How long a repeat waits for the answer of the first redemption, which is being made. */
const ANSWER_WAIT_MS = 3_000
const ANSWER_POLL_MS = 50

const REPEAT = Symbol('the spent refresh token of a repeat')
type Marked = { [REPEAT]?: Buffer }

/** Marks a request as the repeat of a redemption. */
export function markRepeat(ctx: KoaContextWithOIDC, idHash: Buffer): void {
  ;(ctx as Marked)[REPEAT] = idHash
}

/**
 * A hash of who redeems a refresh token. A confidential client has proved itself by its secret, and a bound one by its
 * DPoP key; of any other client the network address has to be the same.
 */
export function bindRefresh(ctx: KoaContextWithOIDC): Buffer {
  const client = ctx.oidc.client
  const isPublic = client?.tokenEndpointAuthMethod === 'none'
  const key = readProofKey(ctx.get('dpop'))
  const parts = [client?.clientId, key ?? (isPublic ? `address ${ctx.ip}` : 'authenticated')]
  return createHash('sha256').update(parts.join('\n')).digest()
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

/**
 * Answers the repeat of a redemption with the first answer (docs/contract/oauth.md#refresh-tokens): a client that lost the
 * answer goes on with the same successor, and there is never a second one. The answer is kept encrypted for a short time.
 */
export function answerRepeats(
  provider: Provider,
  deps: { db: Database; keyring: Keyring; machineClock: Clock; refresh: RefreshRules },
): void {
  provider.use(async (ctx, next) => {
    await next()
    const { oidc } = ctx as KoaContextWithOIDC
    if (ctx.method !== 'POST' || oidc?.route !== 'token' || deps.refresh.repeatMs === 0) return
    const spent = (ctx as Marked)[REPEAT]
    if (spent) {
      const answer = await awaitAnswer(deps, spent)
      if (answer !== undefined) {
        ctx.status = 200
        ctx.body = answer
      }
      return
    }
    const token = oidc.params?.refresh_token
    if (oidc.params?.grant_type !== 'refresh_token' || ctx.status !== 200 || typeof token !== 'string') return
    const idHash = hashStateId(token)
    await keepRefreshAnswer(deps.db, idHash, deps.keyring.seal(JSON.stringify(ctx.body), contextOf(idHash)))
  })
}

async function awaitAnswer(
  { db, keyring, machineClock, refresh }: Parameters<typeof answerRepeats>[1],
  idHash: Buffer,
): Promise<unknown> {
  const until = machineClock.now() + ANSWER_WAIT_MS
  for (;;) {
    const since = new Date(machineClock.now() - refresh.repeatMs - ANSWER_WAIT_MS)
    const answer = await findRefreshAnswer(db, idHash, since)
    if (answer !== undefined) return JSON.parse(keyring.open(answer, contextOf(idHash)))
    if (machineClock.now() >= until) return undefined
    await machineClock.sleep(ANSWER_POLL_MS)
  }
}
