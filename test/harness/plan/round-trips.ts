import type pg from 'pg'
import { sendSeen } from '../database/statement-end.ts'

/** The traffic to the database since counting began. */
export interface Traffic {
  statements: number
  /** Statements that were sent while none was in flight on their connection; others shared a round trip. */
  roundTrips: number
}

type Query = (...args: unknown[]) => unknown

/** One active count. */
interface Count {
  traffic: Traffic
  texts: string[]
}

/** Clients whose `query` is wrapped, and the active counts. */
const watched = new WeakSet<pg.PoolClient>()
const watchers = new WeakMap<pg.Pool, Set<Count>>()

/** Counts the statements and round trips of a pool until `stop`, which returns them. `texts` are the statements, in order. */
export function countTraffic(pool: pg.Pool): { stop(): Traffic; texts: readonly string[] } {
  const count: Count = { traffic: { statements: 0, roundTrips: 0 }, texts: [] }
  let counting = watchers.get(pool)
  if (!counting) {
    counting = new Set()
    watchers.set(pool, counting)
    const all = counting
    pool.on('acquire', (client) => watch(client, all))
  }
  counting.add(count)
  return {
    stop: () => {
      counting.delete(count)
      return count.traffic
    },
    texts: count.texts,
  }
}

function watch(client: pg.PoolClient, counting: ReadonlySet<Count>): void {
  if (watched.has(client)) return
  watched.add(client)
  const query = client.query.bind(client) as Query
  let inFlight = 0
  const counted: Query = (...args) => {
    for (const { traffic, texts } of counting) {
      traffic.statements += 1
      if (inFlight === 0) traffic.roundTrips += 1
      texts.push(readText(args[0]))
    }
    // `pool.query` passes a text and a callback: no statement of the service does.
    if (typeof args.at(-1) === 'function') return query(...args)
    inFlight += 1
    return sendSeen(query, args, (...end) => {
      inFlight -= 1
      return end
    })
  }
  Object.assign(client, { query: counted })
}

function readText(query: unknown): string {
  return typeof query === 'string' ? query : String((query as { text?: unknown }).text)
}
