import { type Database, inTransaction, isLockTimeout } from '../../postgres/statement/database.ts'
import { adoptEnd, decideAdopted, readLogEnd } from '../relay/adopted.store.ts'
import { LEDGER, type LedgerPart } from './account-tables.ts'
import { deleteLinksOf } from './clear.store.ts'
import { clear } from './clear.ts'
import {
  insertRows,
  listOwnWebhooks,
  raiseOrdinal,
  readBeside,
  readLedgerPage,
  readOneSnapshot,
  readOrdinal,
  readState,
} from './copy.store.ts'
import {
  hasAttempts,
  hasOlderTransactions,
  hasUnlogged,
  hasUnrouted,
  readTime,
  restQueues,
  wakeQueues,
} from './drain.store.ts'
import {
  askBack,
  type CopiedKey,
  type CopyProgress,
  enterMove,
  lockPassed,
  nameMovedAccount,
  readFenceVersion,
  renewMove,
  writeCopied,
  writeDirectory,
  writeFence,
} from './move.store.ts'
import type { FenceState, MoveEffect, Place } from './move-plan.ts'
import { enter, MoveSupersededError, type RunningMove } from './running-move.ts'
import { hasTaken } from './taken.ts'

/** Does one effect, which may have been done before. False: it has to wait. */
export async function perform(running: RunningMove, effect: Exclude<MoveEffect, { kind: 'end' }>): Promise<boolean> {
  const { move, at } = running
  const { account } = move
  switch (effect.kind) {
    case 'fence':
      return setFence(running, effect.at, effect.state)
    case 'await-routing':
      return !(await hasUnrouted(at(effect.at), { account }))
    case 'await-outbox':
      return !(await hasUnlogged(at(effect.at), { account }))
    case 'await-intake':
      return hasTaken(running, at(effect.of === 'told' ? null : move.source), at(effect.at))
    case 'rest':
      await enter(running, effect.at, (tx) => restQueues(tx, account))
      return true
    case 'await-attempts':
      return !(await hasAttempts(at(effect.at), { account }))
    case 'close':
      return close(running, effect.at)
    case 'await-transactions':
      running.closedAt ??= await readTime(at(effect.at))
      return !(await hasOlderTransactions(at(effect.at), { since: running.closedAt }))
    case 'copy':
      await copy(running, at(effect.from), at(effect.to))
      return true
    case 'verify':
      return isCopied(running, effect.at)
    case 'keep-closed':
      if ((await enter(running, effect.at, async (_tx, state) => state)) === 'closed') return true
      await askBack(at(null), { account, reason: SOURCE_REOPENED })
      return false
    case 'open':
      if (move.step === 'switch' && !(await isCopied(running, effect.at))) {
        await copy(running, at(move.source), at(effect.at))
        return false
      }
      await enter(running, effect.at, (tx) => wakeQueues(tx, account))
      return setFence(running, effect.at, 'open')
    case 'direct':
      if (await writeDirectory(at(null), { ...move, cell: effect.to })) return true
      throw new MoveSupersededError()
    case 'leave':
      return leave(running, effect.at)
    case 'clear':
      await clear(running, effect.at)
      return true
  }
}

/** The reason of a move that went back, since its source had lost that it was closed. */
const SOURCE_REOPENED = 'source_reopened'

/** Whether the target has the last write of the copy. Otherwise the copy begins anew: rows that are there stay. */
async function isCopied({ move, at }: RunningMove, place: Place): Promise<boolean> {
  if (((await readFenceVersion(at(place), { account: move.account })) ?? 0) >= move.version) return true
  const { ordinal } = move.copied
  const copied = ordinal === undefined ? {} : { ordinal }
  if (!(await writeCopied(at(null), move, copied))) throw new MoveSupersededError()
  move.copied = copied
  return false
}

/** Changes the fence behind the lock of the account. False when a transaction that passed it lasts. */
async function enterAlone(
  running: RunningMove,
  place: Place,
  work: (tx: Database, state: FenceState) => Promise<boolean>,
): Promise<boolean> {
  try {
    return await enter(running, place, async (tx, state) => {
      await lockPassed(tx, running.move.account)
      return work(tx, state)
    })
  } catch (error) {
    if (isLockTimeout(error)) return false
    throw error
  }
}

function setFence(running: RunningMove, place: Place, state: FenceState): Promise<boolean> {
  const { account, version } = running.move
  return enterAlone(running, place, async (tx, present) => {
    // Closed for good: a hold that is done again must not let results in.
    if (present !== state) await writeFence(tx, { account, version: state === 'open' ? version : 0, state })
    return true
  })
}

/** Judges once more behind the lock: who passed the fence has committed. */
function close(running: RunningMove, place: Place): Promise<boolean> {
  const { account } = running.move
  return enterAlone(running, place, async (tx) => {
    if ((await hasUnrouted(tx, { account })) || (await hasAttempts(tx, { account }))) return false
    await writeFence(tx, { account, version: 0, state: 'closed' })
    return true
  })
}

/** The fence is closed, so nobody changes the links meanwhile; the lock is the last one. */
async function leave(running: RunningMove, place: Place): Promise<boolean> {
  const { account } = running.move
  await enter(running, place, (tx) => deleteLinksOf(tx, { account }))
  return setFence(running, place, 'gone')
}

/** Copies the ledger page by page, each with its progress in home, and then the state as a whole. */
async function copy(running: RunningMove, from: Database, to: Database): Promise<void> {
  const { move } = running
  let copied: CopyProgress = move.copied
  const note = async (change: CopyProgress) => {
    copied = { ...copied, ...change }
    if (!(await writeCopied(running.at(null), move, copied))) throw new MoveSupersededError()
    move.copied = copied
  }
  const ordinal = await readOrdinal(from)
  if (copied.ordinal === undefined) await note({ ordinal })
  await enter(running, move.target, (tx) => raiseOrdinal(tx, ordinal))
  const webhooks = await listOwnWebhooks(from, { account: move.account })
  for (const part of LEDGER)
    for (const scope of part.of === 'account' ? [move.account] : webhooks) {
      const name = `${part.table} ${scope}`
      for (let after = copied.parts?.[name]; after !== null; ) {
        const page = await copyPage(running, { from, part, scope, after })
        after = page.after
        await note({ parts: { ...copied.parts, [name]: after }, rows: (copied.rows ?? 0) + page.count })
      }
    }
  await copyState(running, from, to)
}

async function copyPage(
  running: RunningMove,
  given: { from: Database; part: LedgerPart; scope: string; after: CopiedKey | undefined },
): Promise<{ after: CopiedKey | null; count: number }> {
  const { from, part, ...rest } = given
  const { account, target } = running.move
  const { rows, count, at, id } = await readLedgerPage(from, part, { ...rest, limit: running.pageRows })
  const beside =
    part.table === 'webhook_dispatch_ended' && count > 0 ? await readBeside(from, rows, account) : undefined
  if (count > 0)
    await enter(running, target, async (tx) => {
      if (beside?.event_occurrence.count) await insertRows(tx, 'event_occurrence', beside.event_occurrence.rows)
      await insertRows(tx, part.table, rows)
      if (beside?.webhook_attempt.count) await insertRows(tx, 'webhook_attempt', beside.webhook_attempt.rows)
    })
  running.onCopied(part.table, count)
  const isLast = count < running.pageRows || at === undefined || id === undefined
  return { after: isLast ? null : { at, id }, count }
}

async function copyState(running: RunningMove, from: Database, to: Database): Promise<void> {
  const { move } = running
  await inTransaction(from, async (source) => {
    await readOneSnapshot(source)
    await inTransaction(to, async (target) => {
      const state = await enterMove(target, move)
      if (!state) throw new MoveSupersededError()
      await nameMovedAccount(source, move.account)
      for await (const { table, rows, count } of readState(source)) {
        await insertRows(target, table, rows)
        running.onCopied(table, count)
        if (!(await renewMove(running.at(null), move))) throw new MoveSupersededError()
      }
      // Rows that wait stay at rest until the account is open here.
      await restQueues(target, move.account)
      const end = await readLogEnd(source)
      const adopted = end && decideAdopted(end)
      if (adopted) await adoptEnd(target, adopted)
      // The last write of the copy.
      await writeFence(target, { account: move.account, state, version: move.version })
    })
  })
}
