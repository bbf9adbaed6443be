import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { AccountId, EventId } from '../../base/id.ts'
import { type Claim, type DeliveryPolicy, nameClaim } from '../../delivery/policy.ts'
import { measureLost } from '../../delivery/worker-lease.ts'
import { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listChannels } from '../channel/channel.ts'
import { buildMessage } from '../channel/message.ts'
import { decideMessage, type MessageDecision, type MessageResult } from '../provider/outcome.ts'
import type { Publisher } from '../provider/publisher.ts'
import { claimMessages, findLostMessages, findNextDueAt, type LostMessage, releaseMessages } from './claim.store.ts'
import { type ClaimedMessage, readClaimedMessage } from './claimed-message.ts'
import { buildRealtimeRouting } from './routing.store.ts'
import { settleMessages } from './settle.store.ts'

const CONCURRENCY = 256

export interface EndedMessage extends Claim {
  id: EventId
  attempt: number
  account: AccountId
  event: string
  endedAt: Date
  durationMs: number
  result: MessageResult
}

export interface RecordedMessage {
  ended: EndedMessage
  decision: MessageDecision
  /** False when another process had claimed the message: the result is void. */
  isRecorded: boolean
}

export interface RealtimePolicyDeps {
  db: Database
  clock: Clock
  logger: Logger
  publisher: Publisher
  /** Runs after a batch was handed to the provider, before its result is recorded; for crash tests. */
  onPoint?: (point: 'after-publish') => void
  onRecorded?: (recorded: readonly RecordedMessage[]) => void
}

/** Builds the delivery of realtime messages: one for each event, grouped by account, published in batches. */
export function buildRealtimePolicy(
  deps: RealtimePolicyDeps,
): DeliveryPolicy<ClaimedMessage, EndedMessage, RecordedMessage[]> {
  const { db } = deps
  /** The accounts of messages that this process could not send, until those are released. */
  const unsent = new Map<EventId, AccountId>()
  return {
    name: 'realtime',
    concurrency: CONCURRENCY,
    perGroup: CONCURRENCY,
    queue: {
      claim: (request) => claimMessages(db, request),
      settle: (ended) => settle(db, ended),
      release: async (claims, now, dueAt) => {
        await releaseMessages(db, claims, now, dueAt)
        // From now on the queue hands them over in order again.
        deps.publisher.resume(claims.flatMap(({ id }) => unsent.get(id as EventId) ?? []))
        for (const { id } of claims) unsent.delete(id as EventId)
      },
      reclaim: async (request) => {
        const lost = await findLostMessages(db, request)
        return lost.map((claim) => toInterrupted(claim, request.now))
      },
      nextDueAt: (room) => findNextDueAt(db, room),
    },
    buildRouting: buildRealtimeRouting,
    readWork: readClaimedMessage,
    attempt: async (work, signal) => {
      const ended = await attempt(deps, work, signal)
      if (!(ended instanceof OwnFault)) return ended
      unsent.set(work.id, work.account)
      throw ended
    },
    onSettled: (recorded) => {
      const waiting = new Set(unsent.values())
      deps.publisher.resume(recorded.map((result) => result.ended.account).filter((account) => !waiting.has(account)))
      for (const message of recorded) logMessage(deps.logger, message)
      deps.onRecorded?.(recorded)
    },
  }
}

/** Makes one attempt; the fault where this process could not. */
async function attempt(
  deps: RealtimePolicyDeps,
  work: ClaimedMessage,
  signal: AbortSignal,
): Promise<EndedMessage | OwnFault> {
  const interrupt = () => deps.publisher.interrupt()
  if (signal.aborted) interrupt()
  else signal.addEventListener('abort', interrupt, { once: true })
  const data = buildMessage(work.event)
  const channels = listChannels(work)
  const { result, durationMs } = await deps.publisher.publish({
    group: work.group,
    items: channels.map((channel) => ({ channel, name: work.event.type, data })),
  })
  signal.removeEventListener('abort', interrupt)
  if (result.kind === 'own_fault') return result.fault
  deps.onPoint?.('after-publish')
  return {
    ...{ id: work.id, fence: work.fence, attempt: work.attempt, account: work.account, event: work.event.type },
    endedAt: new Date(deps.clock.now()),
    ...{ durationMs, result },
  }
}

async function settle(db: Database, ended: readonly EndedMessage[]): Promise<RecordedMessage[]> {
  const decided = ended.map((attempt) => ({ ended: attempt, decision: decideMessage(attempt) }))
  const changes = decided.map(({ ended: message, decision }) => ({
    ...decision,
    ...{
      id: message.id,
      fence: message.fence,
      account: message.account,
      durationMs: message.durationMs,
      endedAt: message.endedAt,
    },
    isAttempt: message.result.kind !== 'held',
  }))
  const settled = new Set((await settleMessages(db, changes)).map(nameClaim))
  return decided.map((each) => ({ ...each, isRecorded: settled.has(nameClaim(each.ended)) }))
}

function toInterrupted({ startedAt, ...lost }: LostMessage, now: Date): EndedMessage {
  return { ...lost, endedAt: now, durationMs: measureLost(startedAt, now), result: { kind: 'interrupted' } }
}

/** The one line of an attempt (docs/contract/api.md#log-lines). Never the message. */
function logMessage(logger: Logger, { ended, decision, isRecorded }: RecordedMessage): void {
  if (ended.result.kind === 'held') return
  const level = decision.errorClass === null ? 'info' : 'warn'
  if (!logger.isLevelEnabled(level)) return
  const line = {
    message: ended.id,
    account: ended.account,
    event: ended.event,
    attempt: ended.attempt,
    status_code: decision.statusCode,
    error: decision.errorClass,
    duration_ms: Math.round(ended.durationMs),
    status: decision.status,
    next_attempt_at: decision.nextAttemptAt?.toISOString() ?? null,
    recorded: isRecorded,
  }
  logger[level](line, 'realtime attempt')
}
