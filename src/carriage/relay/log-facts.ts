import type { Database } from '../../postgres/statement/database.ts'
import { type OutboxFacts, readOutboxFacts } from './outbox-facts.store.ts'

const COUNT_LIMIT = 10_000

/** Seconds for which an event may wait; an append takes some milliseconds, an election of a leader some 10 s. */
const BEHIND_SECONDS = 60

/** Facts of the event log for the health routes. */
export interface EventLogFacts {
  /** Events that wait for the log; 10,000 stands for that many or more. */
  waiting: number
  /** Age of the oldest of them; 0 when none waits. */
  oldest_waiting_s: number
  has_relay: boolean
  /** Start of the events being republished; null otherwise. */
  republishing_from: string | null
  /** The last detected loss (`replaced` or `behind`) with its time; null without any. */
  loss: 'replaced' | 'behind' | null
  loss_at: string | null
  /** Remedy; null while nothing is wrong. */
  remedy: string | null
}

/** Evaluates the facts of the database. Pure. */
export function decideEventLogFacts(facts: OutboxFacts, now: Date): EventLogFacts {
  const oldestMs = facts.oldestAt ? now.getTime() - facts.oldestAt.getTime() : 0
  const shown = {
    waiting: facts.waiting,
    oldest_waiting_s: Math.max(0, Math.floor(oldestMs / 1000)),
    has_relay: facts.relay !== null,
    republishing_from: facts.republishAfter?.toISOString() ?? null,
    loss: facts.loss,
    loss_at: facts.lossAt?.toISOString() ?? null,
  }
  return { ...shown, remedy: findRemedy(facts, shown) }
}

function findRemedy({ isOpen }: OutboxFacts, facts: Omit<EventLogFacts, 'remedy'>): string | null {
  if (!isOpen)
    return 'No event reaches the log. Start a process with EVENT_LOG_URL: see docs/operations/event-log.md, turning it on.'
  if (facts.oldest_waiting_s >= BEHIND_SECONDS)
    return facts.has_relay
      ? 'The log does not answer, or not fast enough. Look at the servers of NATS: see docs/operations/event-log.md, backlog.'
      : 'No process appends to the log. Look at the log lines of the role dispatcher: see docs/operations/event-log.md, backlog.'
  if (facts.republishing_from !== null)
    return 'Events are published again. Consumers see them twice, by the same ids: see docs/operations/event-log.md, lost events.'
  return null
}

/** Reads and evaluates the facts. */
export async function readEventLogFacts(db: Database, now: Date): Promise<EventLogFacts> {
  return decideEventLogFacts(await readOutboxFacts(db, { limit: COUNT_LIMIT }), now)
}

/** `degraded` while there is something to do (docs/contract/event-log.md#health). Pure. */
export function decideEventLogHealth(facts: EventLogFacts): 'operational' | 'degraded' {
  return facts.remedy === null ? 'operational' : 'degraded'
}
