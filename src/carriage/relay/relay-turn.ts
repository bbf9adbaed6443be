import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { LoggedEvent } from '../log/carried-event.ts'
import { buildEventMessage } from '../log/event-message.ts'
import type { EventLog, LogPosition, LogState } from '../log/log.ts'
import type { AdoptedEnd } from './adopted.store.ts'
import { examineLog, findLastOwn } from './log-check.ts'
import { decideRepublishFrom, type FoundLoss, type Loss } from './loss.ts'
import {
  type Appended,
  advanceRepublication,
  leaseRelay,
  noteLoss,
  type RelayState,
  type Republication,
  readRepublished,
  renewRelay,
  takeWaiting,
  type WaitingEvent,
} from './outbox.store.ts'

/** Events of a batch: the log waits for the disks of its servers once a batch. */
const BATCH_SIZE = 250

/** Lease of a relay: longer than the log may take to answer, so that a slow answer does not change the relay. */
const LEASE_MS = 20_000

/** Wait for new events, for the lease of another process, and after a failure. */
const POLL_MS = 200
const LEASE_POLL_MS = 1_000
export const RETRY_MS = 1_000

/** Interval at which a relay verifies the log, where nothing else makes it do so. */
const CHECK_EVERY_MS = 10_000

/** Time for which a log must end too early to count as lost: a new leader may not have read its whole log. */
const BEHIND_CONFIRMED_MS = 5_000

export interface RelayCounts {
  onAppended: (count: number) => void
  onFailed: () => void
  onLoss: (loss: Loss) => void
}

export interface RelayDeps extends RelayCounts {
  db: Database
  clock: Clock
  logger: Logger
  relayId: string
  /** Connects to the log; called again after it failed. Throws a `LogError`. */
  open: () => Promise<EventLog>
  buildBody: (event: LoggedEvent) => string
  /** Seals the messages between databases of this service. */
  seal?: (text: string) => string
  /** Retention of a message in the log. */
  maxAgeMs: number
  /** Monotonic milliseconds. */
  monotonicMs?: () => number
  /** Pauses in real time. */
  rest?: Clock['sleep']
}

/** Verified state of the log that is not yet in the database. */
interface Standing {
  end: LogPosition
  /** Positions in the outbox that the log has confirmed. */
  confirmed: string[]
  /** The last message that this process has appended. */
  own: Appended | undefined
  republication: Republication | undefined
  checkedAtMs: number
  /** The connection of the last check. */
  reconnects: number
}

export interface RelayContext {
  deps: RelayDeps & { monotonicMs: () => number }
  log: EventLog | undefined
  /** Undefined until the lease and the log are verified, and after each failure. */
  standing: Standing | undefined
  /** The batch without an answer. */
  unanswered: { after: LogPosition; events: readonly WaitingEvent[] } | undefined
  behindSinceMs: number | undefined
}

/** The lease of a process in the statements of the outbox. */
export const leaseOf = ({ deps }: RelayContext) => ({ relay: deps.relayId, leaseMs: LEASE_MS })

/** One step: verifies, or appends a batch. Returns the pause until the next one, in ms. */
export async function takeTurn(context: RelayContext): Promise<number> {
  if (!context.standing) {
    const wait = await stand(context)
    if (wait !== undefined) return wait
  }
  const { log, standing } = context
  if (!log || !standing) return 0
  if (isCheckDue(context.deps, { log, standing }) && !(await checkAgain(context, { log, standing }))) {
    context.standing = undefined
    return 0
  }
  const { republication } = standing
  return republication
    ? relayAgain(context, { log, standing, from: republication })
    : relayWaiting(context, { log, standing })
}

/** A connection is new when the servers were restarted: the log may have lost its end. */
const isCheckDue = ({ monotonicMs }: RelayContext['deps'], { log, standing }: Verified) =>
  log.countReconnects() !== standing.reconnects || monotonicMs() - standing.checkedAtMs >= CHECK_EVERY_MS

/**
 * Whether lease and log are as before. A republication that a command began, a lost lease, and a log that was replaced or
 * lost its end, also for others to append in its place, are seen here.
 */
async function checkAgain(context: RelayContext, { log, standing }: Verified): Promise<boolean> {
  const { deps } = context
  const known = await renewRelay(deps.db, leaseOf(context))
  if (!known || (known.republishUntil && !standing.republication)) return false
  const { own, end } = standing
  const reconnects = log.countReconnects()
  const appended = own && { ownSequence: own.sequence, ownEvent: own.event.id }
  if ((await examineLog(log, { ...known, ...end, ...appended })).found) return false
  standing.reconnects = reconnects
  standing.checkedAtMs = deps.monotonicMs()
  return true
}

/** Takes the lease, and compares the log with its confirmed position. Undefined, or the pause until the next check. */
async function stand(context: RelayContext): Promise<number | undefined> {
  const { deps } = context
  const known = await leaseRelay(deps.db, leaseOf(context))
  if (!known) return LEASE_POLL_MS
  context.log ??= await deps.open()
  const { log } = context
  const check = { checkedAtMs: deps.monotonicMs(), reconnects: log.countReconnects() }
  const { state, found } = await examineLog(log, known)
  if (found && !found.isCertain && !isConfirmedBehind(context)) return RETRY_MS
  context.behindSinceMs = undefined
  const stored = await findStored(context, log, state)
  const last = stored.at(-1)
  const standing: Standing = {
    ...{ end: { incarnation: state.incarnation, sequence: state.sequence }, ...check },
    ...{ confirmed: stored.map(({ position }) => position), own: last && { sequence: state.sequence, event: last } },
    republication: readRepublication(known),
  }
  if (found) await reportLoss(context, { log, state, standing, found, known })
  context.standing = standing
  return undefined
}

/** The part of what came by moves stays to be compared. */
const NONE_ADOPTED: AdoptedEnd = { adoptedIncarnation: null, adoptedSequence: null, adoptedEvent: null }

function isConfirmedBehind(context: RelayContext): boolean {
  const nowMs = context.deps.monotonicMs()
  context.behindSinceMs ??= nowMs
  return nowMs - context.behindSinceMs >= BEHIND_CONFIRMED_MS
}

/** The events of the batch without an answer, when the log ends with exactly them. */
async function findStored(context: RelayContext, log: EventLog, state: LogPosition): Promise<readonly WaitingEvent[]> {
  const batch = context.unanswered
  context.unanswered = undefined
  if (!batch || batch.after.incarnation !== state.incarnation) return []
  if (state.sequence !== batch.after.sequence + batch.events.length) return []
  const last = await log.readLast()
  return last?.id === batch.events.at(-1)?.id ? batch.events : []
}

async function reportLoss(
  { deps }: RelayContext,
  given: Verified & { state: LogState; found: FoundLoss; known: RelayState },
): Promise<void> {
  const { log, state, standing, found, known } = given
  const { loss, isAdopted } = found
  const { end } = standing
  const now = new Date(deps.clock.now())
  const isPart = loss === 'behind' && !isAdopted
  const lastAt = isPart ? await findLastOwn(deps.db, log, { ...known, state }) : undefined
  const after = decideRepublishFrom(loss, { lastAt, now, maxAgeMs: deps.maxAgeMs })
  const noted = await noteLoss(deps.db, {
    relay: deps.relayId,
    loss,
    after,
    now,
    end,
    adopted: isPart ? NONE_ADOPTED : known,
  })
  standing.republication = noted && readRepublication(noted)
  deps.onLoss(loss)
  deps.logger.error(
    { loss, confirmed_sequence: known.sequence, log_sequence: end.sequence, republish_after: after.toISOString() },
    'event log lost events, publishing them again: see docs/operations/event-log.md, lost events',
  )
}

interface Verified {
  log: EventLog
  standing: Standing
}

async function relayWaiting(context: RelayContext, { log, standing }: Verified): Promise<number> {
  const { deps } = context
  const confirmed = { positions: standing.confirmed, end: standing.end, own: standing.own }
  const taken = await takeWaiting(deps.db, { ...leaseOf(context), confirmed, limit: BATCH_SIZE })
  if (!taken) {
    context.standing = undefined
    return 0
  }
  const { events, removed } = taken
  standing.confirmed = removed
  if (removed.length > 0)
    deps.logger.error(
      { events: removed.length },
      'events were removed by retention before they reached the event log: see docs/operations/event-log.md, backlog',
    )
  const last = events.at(-1)
  if (!last) return removed.length > 0 ? 0 : POLL_MS
  context.unanswered = { after: standing.end, events }
  const end = await append(context, log, { events, after: standing.end })
  // The log may be another one than that of the last check: it finds what was stored.
  if (log.countReconnects() !== standing.reconnects) {
    context.standing = undefined
    return 0
  }
  Object.assign(standing, { end, own: { sequence: end.sequence, event: last } })
  context.unanswered = undefined
  standing.confirmed.push(...events.map(({ position }) => position))
  return 0
}

async function relayAgain(
  context: RelayContext,
  { log, standing, from }: Verified & { from: Republication },
): Promise<number> {
  const { deps } = context
  const events = await readRepublished(deps.db, { ...from, limit: BATCH_SIZE })
  const last = events.at(-1)
  if (last) {
    const end = await append(context, log, { events, after: standing.end })
    if (log.countReconnects() !== standing.reconnects) {
      context.standing = undefined
      return 0
    }
    Object.assign(standing, { end, own: { sequence: end.sequence, event: last } })
  }
  const next = last ? { after: last.createdAt, ordinal: last.position } : null
  const { end, own } = standing
  const isAhead = await advanceRepublication(deps.db, { ...leaseOf(context), end, own, seen: from.after, next })
  if (!isAhead) context.standing = undefined
  else standing.republication = next ? { ...from, ...next } : undefined
  if (isAhead && !next) deps.logger.info('event log: all events are published again')
  return 0
}

async function append(
  { deps }: RelayContext,
  log: EventLog,
  { events, after }: { events: readonly WaitingEvent[]; after: LogPosition },
): Promise<LogPosition> {
  const messages = events.map((event) => buildEventMessage(event, deps.buildBody, deps.seal))
  const end = await log.append(messages, after)
  deps.onAppended(events.length)
  return end
}

function readRepublication({
  republishAfter,
  republishOrdinal,
  republishUntil,
}: RelayState): Republication | undefined {
  if (!republishAfter || !republishUntil) return undefined
  return { after: republishAfter, ordinal: republishOrdinal ?? '0', until: republishUntil }
}
