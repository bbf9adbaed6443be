import { sweepOwn } from '../postgres/ledger-sweep.ts'
import { type Sweep, sweepOld, sweepOnce } from '../postgres/sweep.ts'
import { deleteOldGrants } from './authorization/grant.store.ts'
import { deleteOldChannelEvents, deleteOldChannelStates } from './channel/channel-event.store.ts'
import { deleteOldMessages, deleteOwnMessages } from './delivery/settle.store.ts'
import { deleteOldWatches } from './watch/watch.store.ts'

const DAY_MS = 24 * 3_600_000

/** Retention of ended messages, for the inspector. */
const MESSAGE_KEPT_MS = 3 * DAY_MS

/** Retention of the reports of ended processes. */
const WATCH_KEPT_MS = 3_600_000

/** Retention of the state of a channel after its last report. */
const CHANNEL_KEPT_MS = 30 * DAY_MS

/** Retention of authorized subscriptions: a longer connection is authorized again when it reconnects. */
const GRANT_KEPT_MS = 7 * DAY_MS

/** Messages, channels and grants of browsers. */
export const realtimeSweeps: readonly Sweep[] = [
  sweepOld('realtimeMessages', MESSAGE_KEPT_MS, deleteOldMessages),
  // An account that keeps less than the inspector shows.
  sweepOwn(['realtimeMessages'], async ({ db, now, limit }, own) => {
    const sooner = own.filter(({ before }) => now.getTime() - before.getTime() < MESSAGE_KEPT_MS)
    return [sooner.length === 0 ? 0 : await deleteOwnMessages(db, sooner, limit)]
  }),
  sweepOnce('realtimeWatches', ({ db, now }) =>
    deleteOldWatches(db, { before: new Date(now.getTime() - WATCH_KEPT_MS) }),
  ),
  sweepOld('realtimeChannelEvents', DAY_MS, deleteOldChannelEvents),
  sweepOld('realtimeChannelStates', CHANNEL_KEPT_MS, deleteOldChannelStates),
  sweepOld('realtimeGrants', GRANT_KEPT_MS, deleteOldGrants),
]
