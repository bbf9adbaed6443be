import type { Database } from '../../postgres/statement/database.ts'
import { type EntranceCount, readEntranceCounts } from './entrance-count.store.ts'

export type { EntranceCount } from './entrance-count.store.ts'

/** Maximum number of entries read for one action, so that the cost of a count does not grow with the log. */
const ENTRIES_LIMIT = 5_000

/** The counted actions: sign-ins with a provider, and exchanges of handshakes. */
export type EntranceAction = 'login.oauth-start' | 'login.oauth-callback' | 'login.oauth' | 'sso.exchange'

/** Attempts by action, outcome and distinguishing details. */
export interface EntranceCounts {
  counts: EntranceCount[]
  /** The instant from which every attempt is counted. */
  since: Date
}

/** Counts the entries of each action since an instant, the newest 5,000; `since` is then that of the oldest one. */
export async function countEntrances(
  db: Database,
  { actions, since, limit = ENTRIES_LIMIT }: { actions: readonly EntranceAction[]; since: Date; limit?: number },
): Promise<EntranceCounts> {
  const rows = await readEntranceCounts(db, { actions, since, limit })
  const cut = actions.flatMap((action) => {
    const own = rows.filter((row) => row.action === action)
    if (own.reduce((sum, { entries }) => sum + entries, 0) < limit) return []
    return [Math.min(...own.map(({ oldest }) => oldest.getTime()))]
  })
  return {
    counts: rows.map(({ oldest: _oldest, entries: _entries, ...count }) => count),
    since: new Date(Math.max(since.getTime(), ...cut)),
  }
}
