import type { EventId } from '../../base/id.ts'
import type { MergedReads } from '../../http/listing/merge.ts'
import type { Caller } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type AuthorizationDeps, requireApp, requireJoinable } from '../authorization/authorization.ts'
import { parseChannel } from '../channel/channel.ts'
import { describeMessage, type MessageView } from '../channel/message.ts'
import { findPosition, REPLAY_LIMIT, type ReplayParams, type ReplayRow, readReplay } from './replay.store.ts'

/** Age up to which a message is replayed. */
export const REPLAY_MS = 120_000

/** Characters of the ids and paths of an answer, which other services may choose. */
export const REPLAY_TEXT = 1_000_000

/** Maximum difference between the clocks of publishing processes, and between the ends of messages of one call. */
const SKEW_MS = 5_000

export interface Replay {
  /** In the order of the channel. Some before the position may be among them. */
  messages: MessageView[]
  /** Whether the page has to read its data again: messages since the position are too old, or too many. */
  missed: boolean
}

/** A position on a channel, and the caller. */
export interface ReplayRequest {
  channel: string
  after: EventId | null
  since: Date
  caller: Caller
  now: Date
  /** The databases of the service, where they are several. */
  merged?: MergedReads | undefined
}

/** Messages of a channel since a position (docs/contract/realtime.md#resume). Throws 403, and 503 in log-only mode. */
export async function replayChannel(
  deps: AuthorizationDeps,
  db: Database,
  { channel, caller, now, merged, ...position }: ReplayRequest,
): Promise<Replay> {
  requireApp(deps)
  const { subject, account } = await requireJoinable(deps, db, { subject: parseChannel(channel), caller })
  const contract = subject.kind === 'contract' ? subject.id : null
  const params = { account, contract, ...position }
  return decideReplay(await (merged ? readReplayOfAll(merged, params) : readReplay(db, params)), now)
}

/** The messages of home and of the database of the account: the position is known to one of them. */
async function readReplayOfAll(merged: MergedReads, params: ReplayParams): Promise<ReplayRow[]> {
  const reads = merged.among([params.account])
  const known = params.after === null ? [] : await reads.ask(({ db }) => findPosition(db, params))
  const at = Math.max(params.since.getTime(), ...known.map((time) => time?.getTime() ?? 0))
  // A database that has the message counts its own time of it too: the later one is the position.
  const pages = await reads.ask(({ db }) => readReplay(db, { ...params, since: new Date(at) }))
  const rows = new Map(pages.flat().map((row) => [row.id, row]))
  return [...rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

function decideReplay(rows: readonly ReplayRow[], now: Date): Replay {
  const published = rows.filter(({ status }) => status === 'published')
  const oldestMs = now.getTime() - REPLAY_MS
  const isLost = ({ publishedAt, seenAt }: ReplayRow) =>
    publishedAt.getTime() < oldestMs && publishedAt.getTime() > seenAt.getTime() + SKEW_MS
  if (rows.length >= REPLAY_LIMIT || published.some(isLost)) return { messages: [], missed: true }
  const messages = published.map(describeMessage)
  const length = messages.reduce((sum, { data }) => sum + (data.id?.length ?? 0) + (data.url?.length ?? 0), 0)
  return length > REPLAY_TEXT ? { messages: [], missed: true } : { messages, missed: false }
}
