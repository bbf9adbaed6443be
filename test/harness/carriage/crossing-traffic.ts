import { randomUUID } from 'node:crypto'
import type { TestDatabase } from '../database/database.ts'
import type { Receiver } from '../fakes/receiver.ts'
import type { ServiceProcess } from '../process/service-process.ts'
import { waitFor } from '../run/wait.ts'

const FAR = { limitMs: 180_000 }

/** Events of one statement, or of one request. */
const PACK = 50

/** Events that are recorded and have not arrived: the recorder waits while there are more. */
const ON_THEIR_WAY = 500

/** The ids of the events that receivers got. */
export interface Arrivals {
  /** Reads what has come since, and returns the ids of all. */
  ids(): ReadonlySet<string>
}

/** Follows receivers: each request is read once. */
export function followArrivals(receivers: readonly Receiver[]): Arrivals {
  const ids = new Set<string>()
  const read = new Map<Receiver, number>()
  return {
    ids: () => {
      for (const receiver of receivers) {
        const { requests } = receiver
        for (const { body } of requests.slice(read.get(receiver) ?? 0)) ids.add(JSON.parse(body.toString()).id)
        read.set(receiver, requests.length)
      }
      return ids
    },
  }
}

/** Events that cross databases: of home for accounts in cells, of cells for a global webhook. */
export interface CrossingTraffic {
  /** The ids of the events that home recorded, and of those that the API accepted. */
  accepted: { home: string[]; cells: string[] }
  /** Requests that failed, and were not repeated: what they did is not known. */
  failures(): number
  /** Waits until so many events were accepted. */
  finished: Promise<void>
}

/** Records `total` events, as fast as they arrive: half in home, as changes do, half by publications in cells. */
export function startCrossing(given: {
  call: ServiceProcess['call']
  home: TestDatabase
  accounts: readonly string[]
  arrivals: Arrivals
  total: number
  /** How many events it may record by now. */
  limit: () => number
  /** Stands for the time until retries are due. */
  passTime: () => Promise<void>
}): CrossingTraffic {
  const { call, home, accounts, arrivals, total, limit, passTime } = given
  const accepted = { home: [] as string[], cells: [] as string[] }
  let failures = 0
  const accountOf = (index: number) => accounts[index % accounts.length] as string

  async function recordInHome(): Promise<void> {
    const ids = Array.from({ length: PACK }, () => randomUUID())
    await home.pool.query(
      `with recorded as (
         insert into event_occurrence (document_id, event, account, resource, action, resource_id, created_at)
         select id, 'contract.create', account, 'contract', 'create', id::text, now()
         from unnest($1::uuid[], $2::uuid[]) as x (id, account) returning document_id
       ) insert into event_queue select document_id from recorded`,
      [ids, ids.map((_, index) => accountOf(index))],
    )
    accepted.home.push(...ids)
  }

  async function publish(): Promise<void> {
    const events = Array.from({ length: PACK }, (_, index) => ({
      ...{ event: 'invoice.create', account: accountOf(index), id: `${index}` },
    }))
    const answer = await call('POST', '/api/v3/webhook/publish', { events }).catch(() => undefined)
    if (answer?.status === 202)
      accepted.cells.push(...answer.body.data.events.map(({ event_id }: { event_id: string }) => event_id))
    else if (answer && answer.status < 500) throw new Error(JSON.stringify(answer.body))
    else failures += 1
  }

  async function hasRoom(count: number): Promise<boolean> {
    if (count < limit() && count - arrivals.ids().size < ON_THEIR_WAY) return true
    await passTime()
    return false
  }

  async function run(): Promise<void> {
    const count = () => accepted.home.length + accepted.cells.length
    while (count() < total) {
      await (accepted.home.length <= accepted.cells.length ? recordInHome() : publish())
      const describe = () => `${arrivals.ids().size} of ${count()} arrived`
      if (count() < total) await waitFor('arrivals', () => hasRoom(count()), { ...FAR, describe })
    }
  }

  const finished = run()
  finished.catch(() => {})
  return { accepted, failures: () => failures, finished }
}

/** Stands for the minutes until the next attempts of a webhook, of an account that is not moving. */
export async function hurryWebhook({ pool }: TestDatabase, webhook: string): Promise<void> {
  await pool.query(
    `with due as (
       update webhook_dispatch_open set next_attempt_at = now()
       where webhook = $1 and status = 'retrying' and next_attempt_at > now() returning webhook
     ) update webhook_queue set visit_at = now() where webhook in (select webhook from due)`,
    [webhook],
  )
}
