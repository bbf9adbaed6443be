import type { Database } from '../../postgres/statement/database.ts'
import { LEDGER, type LedgerPart } from './account-tables.ts'
import {
  type Deletion,
  deleteEventPage,
  deleteListedEvents,
  deleteListedMessages,
  listLedgerDeletions,
  listMessageDeletions,
  listOpenMessages,
  listStateDeletions,
} from './clear.store.ts'
import { FIRST, listOwnWebhooks, readLedgerPage } from './copy.store.ts'
import { wakeRealtimeQueue } from './drain.store.ts'
import type { CopiedKey } from './move.store.ts'
import type { Place } from './move-plan.ts'
import { enter, type RunningMove } from './running-move.ts'

/** Deletes what a place has of the account, in pages; its webhooks last, since they find the rest. */
export async function clear(running: RunningMove, place: Place): Promise<void> {
  const { move, pageRows: limit } = running
  const { account, step, copied } = move
  const inPages = async (pages: readonly Deletion[]) => {
    for (const page of pages) while ((await enter(running, place, page)) > 0) running.onCopied('cleared', 0)
  }
  for (const webhook of await listOwnWebhooks(running.at(place), { account }))
    await inPages(listLedgerDeletions(webhook, limit))
  // On the way back from home only what was copied: home has events of its own about the account.
  if (step === 'back' && place === null) await clearCopied(running)
  else {
    // Events that home told after the account had left are not behind the ordinal of the copy.
    const ordinal = step === 'back' ? Number.MAX_SAFE_INTEGER : (copied.ordinal ?? 0)
    await inPages(listMessageDeletions({ account, ordinal, limit }))
    await clearEvents(running, place, ordinal)
  }
  for (const remove of listStateDeletions(account)) await enter(running, place, remove)
  await enter(running, place, (tx) => wakeRealtimeQueue(tx, account))
}

async function clearEvents(running: RunningMove, place: Place, ordinal: number): Promise<void> {
  const { account } = running.move
  let after: CopiedKey | undefined = FIRST
  while (after) {
    const given: Parameters<typeof deleteEventPage>[1] = { account, ordinal, ...after, limit: running.pageRows }
    after = await enter<CopiedKey | undefined>(running, place, (tx) => deleteEventPage(tx, given))
  }
}

/** Removes from home the events and messages that the source has: those that home recorded itself have other ids. */
async function clearCopied(running: RunningMove): Promise<void> {
  const { account, source } = running.move
  const from = running.at(source)
  // A message that ends meanwhile is found in the second list.
  const open = await listOpenMessages(from, { account })
  await enter(running, null, (tx) => deleteListedMessages(tx, open))
  await clearListed(running, 'realtime_message_ended', deleteListedMessages)
  const deleteEvents = (tx: Database, rows: string) => deleteListedEvents(tx, rows, source ?? 'home')
  await clearListed(running, 'event_occurrence', deleteEvents)
}

async function clearListed(
  running: RunningMove,
  table: string,
  remove: (tx: Database, rows: string) => Promise<void>,
): Promise<void> {
  const { account, source } = running.move
  const part = LEDGER.find((each) => each.table === table) as LedgerPart
  for (let after: CopiedKey | undefined; ; ) {
    const page = await readLedgerPage(running.at(source), part, { scope: account, after, limit: running.pageRows })
    await enter(running, null, (tx) => remove(tx, page.rows))
    if (page.count < running.pageRows || !page.at || !page.id) return
    after = { at: page.at, id: page.id }
  }
}
