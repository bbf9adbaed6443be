import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import type { AccountId, EventId } from '../../../src/base/id.ts'
import type { EventLog } from '../../../src/carriage/log/log.ts'
import { openOutbox } from '../../../src/carriage/relay/outbox.store.ts'
import { readOutboxFacts } from '../../../src/carriage/relay/outbox-facts.store.ts'
import { buildRelay, type Relay } from '../../../src/carriage/relay/relay.ts'
import type { RelayDeps } from '../../../src/carriage/relay/relay-turn.ts'
import { recordEvents } from '../../../src/event/occurrence/event.ts'
import type { Database } from '../../../src/postgres/statement/database.ts'
import { createTestDatabase } from '../database/database.ts'
import { buildManualClock } from '../run/manual-clock.ts'
import { buildMemoryLog } from './memory-log.ts'

const ACCOUNT = '0190a5c0-0000-7000-8000-00000000000a' as AccountId
export const MAX_AGE_MS = 86_400_000

/** A relay between a database with an open outbox and a log in memory. */
export async function buildRelayUnderTest() {
  const database = await createTestDatabase({ isOwn: true })
  const clock = buildManualClock()
  const log = buildMemoryLog(() => new Date(clock.now()))
  const { db, pool } = database
  await openOutbox(db)
  let monotonicMs = 0
  const told = { appended: 0, failed: 0, losses: [] as string[], lines: [] as string[], opened: 0 }
  const logger = pino({ level: 'info' }, { write: (line) => void told.lines.push(JSON.parse(line).msg) })

  /** Rounds run one after the other: nothing else moves. */
  const build = (relayId: string, to: EventLog = log, more: Partial<RelayDeps> = {}): Relay =>
    buildRelay({
      ...{ db, clock, logger, relayId, maxAgeMs: MAX_AGE_MS, monotonicMs: () => monotonicMs },
      open: async () => {
        told.opened += 1
        return to
      },
      buildBody: ({ id }) => JSON.stringify({ id }),
      onAppended: (count) => {
        told.appended += count
      },
      onFailed: () => {
        told.failed += 1
      },
      onLoss: (loss) => told.losses.push(loss),
      ...more,
    })
  const relay = build('relay-1')

  /** Records events in one statement; their ids. */
  async function record(count = 1, on: Database = db): Promise<string[]> {
    const drafts = Array.from({ length: count }, () => ({
      id: randomUUID() as EventId,
      type: 'contract.update',
      accountScope: 'account' as const,
      ...{ account: ACCOUNT, resource: 'contract', action: 'update', resourceId: null, url: null },
    }))
    const ids = { next: () => randomUUID() as never }
    await recordEvents({ ids, enableApiEventQueue: true }, on, drafts, new Date(clock.now()))
    // The insertion is sent with the next statement of a transaction.
    await on.selectFrom('event_log').select('name').execute()
    return drafts.map(({ id }) => id)
  }

  return {
    ...{ db, pool, clock, log, relay, told, record, build },
    passMs: (ms: number) => {
      monotonicMs += ms
      clock.advance(ms)
    },
    facts: () => readOutboxFacts(db, { limit: 1_000_000 }),
    stored: () => log.entries().map(({ id }) => id),
    /** Rounds until one pauses; the pause. */
    settle: async (of: Relay = relay) => {
      for (let rounds = 0; rounds < 1_000; rounds += 1) {
        const pause = await of.round()
        if (pause > 0) return pause
      }
      throw new Error('the relay does not rest')
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
