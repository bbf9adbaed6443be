import type { KoaContextWithOIDC } from 'oidc-provider'
import type { Clock } from '../../base/clock.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { ProviderPages } from './provider-pages.ts'
import { answerRepeat, isRefreshRepeat, markRepeat, type RefreshRules, sealAnswer } from './state/refresh-repeat.ts'
import {
  findBegunState,
  findBrowserOfRows,
  hasWrites,
  type RequestState,
  type SpentState,
} from './state/request-state.ts'
import { deleteTokenFamily, findState } from './state/state.store.ts'
import { writeStateBatch } from './state/state-batch.store.ts'
import { finishRevocations, hasRevocations, type ProviderRevocations } from './token-family/revocations.ts'

/** Dependencies of `finishRequest`. */
export interface RequestEndDeps {
  db: Database
  keyring: Keyring
  machineClock: Clock
  refresh: RefreshRules
  pages: Pick<ProviderPages, 'renderError' | 'replaceSubmitPage'>
  revocations: ProviderRevocations
}

/**
 * Completes a request that the library has answered, before the answer is sent: a page of the library becomes one of
 * the service, the state is written, revocations of a family are awaited, and a repeat gets its first answer. Most
 * requests need none of these.
 */
export async function finishRequest(deps: RequestEndDeps, ctx: KoaContextWithOIDC): Promise<void> {
  deps.pages.replaceSubmitPage(ctx)
  const state = findBegunState(ctx)
  if (state && hasWrites(state)) await writeAtRequestEnd(deps, ctx, state)
  if (hasRevocations(ctx)) await finishRevocations(deps.revocations, ctx)
  if (state?.repeatOf) await answerRepeat(deps, ctx, state.repeatOf)
}

/** Makes the deferred writes of a request: the spent code or token, issued tokens, the answer for a repeat. */
export async function writeAtRequestEnd(
  deps: RequestEndDeps,
  ctx: KoaContextWithOIDC,
  state: RequestState,
): Promise<void> {
  try {
    if (!(await writeState(deps, ctx, state))) await refuseSpent(deps, ctx, state.spent)
  } catch (error) {
    await answerFault(deps, ctx, error)
  }
}

function writeState(deps: RequestEndDeps, ctx: KoaContextWithOIDC, state: RequestState): Promise<boolean> {
  const { db, machineClock, refresh } = deps
  const { spent, writes } = state
  const isKept = spent?.model === 'RefreshToken' && ctx.status === 200 && refresh.repeatMs > 0
  const answer = isKept ? sealAnswer(deps, spent.idHash, ctx.body) : null
  const now = new Date(machineClock.now())
  const browser = findBrowserOfRows(ctx, state)
  return writeStateBatch(db, { spent: spent && { ...spent, answer }, rows: [...writes.values()], browser, now })
}

/** Refuses the redemption of a code or token that another call or process has spent. */
async function refuseSpent(
  deps: RequestEndDeps,
  ctx: KoaContextWithOIDC,
  spent: SpentState | undefined,
): Promise<void> {
  ctx.status = 400
  ctx.body = { error: 'invalid_grant', error_description: 'grant request is invalid' }
  if (!spent) return
  const { db, machineClock } = deps
  const found = await findState(db, { ...spent, now: new Date(machineClock.now()) })
  if (spent.model === 'RefreshToken' && found && isRefreshRepeat(deps, found, ctx)) markRepeat(ctx, spent.idHash)
  // Of two concurrent redemptions one may be an attacker's: the whole authorization is revoked.
  else if (typeof found?.payload.grantId === 'string') {
    await deleteTokenFamily(db, found.payload.grantId)
    ctx.oidc.provider.emit('grant.revoked', ctx, found.payload.grantId)
  }
}

/** Answers a fault of the database as the provider answers its own: nothing of the answer that was prepared is sent. */
async function answerFault({ pages }: RequestEndDeps, ctx: KoaContextWithOIDC, error: unknown): Promise<void> {
  const out = { error: 'server_error', error_description: 'oops! something went wrong' }
  for (const name of ['location', 'set-cookie']) ctx.remove(name)
  ctx.status = 500
  if (ctx.oidc.route === 'token') ctx.body = out
  else await pages.renderError(ctx, out, error)
  ctx.oidc.provider.emit('server_error', ctx, error)
}
