import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { isAccountRefused } from '../../../src/postgres/cell/account-fence.ts'
import type { TestDatabase } from '../database/database.ts'
import type { Receiver } from '../fakes/receiver.ts'
import type { ServiceProcess } from '../process/service-process.ts'
import { waitFor } from '../run/wait.ts'
import { followArrivals } from './crossing-traffic.ts'

/** Far beyond what a move takes on a busy machine. */
const FAR = { limitMs: 180_000 }

/** Events that the receiver may not have yet, and how long the traffic waits for them: it is as fast as its delivery. */
const OPEN_LIMIT = 8
const PATIENCE_MS = 1_000

/** Pause after each event: most of the time of a test is that of moves and restarts. */
const PAUSE_MS = 50

/** A client of an account, which publishes and changes contracts, and repeats what is refused while the account moves. */
export interface MovedTraffic {
  /** The ids of the events that were accepted, by their event type. */
  accepted: { published: string[]; contracts: string[] }
  /** Answers 503 `account_moving` so far. */
  refusals(): number
  /** Waits until so many more events are accepted. */
  waitForMore(count: number): Promise<void>
  stop(): Promise<void>
}

export interface TrafficDeps {
  /** The process that is called. */
  call: ServiceProcess['call']
  account: string
  cell: TestDatabase
  receiver: Receiver
  /** Whether a call that failed for another reason is repeated too: what it did is not known. */
  isPatient?: boolean
}

/** The ids of the events that a receiver got, one for each request. */
export const idsOf = ({ requests }: Receiver): string[] =>
  requests.map(({ body }) => JSON.parse(body.toString()).id as string)

/** Starts it. An answer that is neither an acceptance nor `account_moving` fails the stop. */
export function startTraffic({ call, account, cell, receiver, isPatient = false }: TrafficDeps): MovedTraffic {
  const accepted = { published: [] as string[], contracts: [] as string[] }
  const total = () => accepted.published.length + accepted.contracts.length
  const arrivals = followArrivals([receiver])
  const countOpen = () => new Set(accepted.published).difference(arrivals.ids()).size
  let refused = 0
  let isStopped = false

  async function send(path: string, body: object, status: number): Promise<unknown> {
    const called = call('POST', path, body)
    const answer = await (isPatient ? called.catch(() => undefined) : called)
    if (answer?.status === status) return answer.body
    const isMoving = answer?.status === 503 && answer.body.code === 'account_moving'
    const isUnknown = isPatient && (answer?.status ?? 500) >= 500
    if (!isMoving && !isUnknown) throw new Error(JSON.stringify(answer?.body))
    if (isMoving) refused += 1
    return undefined
  }

  async function publish(): Promise<boolean> {
    const body = { event: 'invoice.create', account, id: `${total()}` }
    const answer = (await send('/api/v3/webhook/publish', body, 202)) as
      | { data: { events: { event_id: string }[] } }
      | undefined
    const id = answer?.data.events[0]?.event_id ?? (await publishInCell(cell, account))
    if (id !== undefined) accepted.published.push(id)
    return id !== undefined
  }

  async function change(): Promise<boolean> {
    const body = { name: 'A contract', account }
    const answer = (await send('/api/v3/contract/contract', body, 201)) as { data: { document_id: string } } | undefined
    if (answer) accepted.contracts.push(answer.data.document_id)
    return answer !== undefined
  }

  async function run(): Promise<void> {
    for (let turn = 0; !isStopped; turn += 1) {
      await waitFor('an acceptance', () => isStopped || (turn % 4 === 0 ? change() : publish()), FAR)
      const startedMs = performance.now()
      await waitFor(
        'deliveries',
        () => isStopped || countOpen() < OPEN_LIMIT || performance.now() - startedMs > PATIENCE_MS,
      )
      await setTimeout(PAUSE_MS)
    }
  }

  const running = run()
  running.catch(() => {})
  return {
    accepted,
    refusals: () => refused,
    waitForMore: async (count) => {
      const wanted = total() + count
      await Promise.race([waitFor(`${count} more events`, () => total() >= wanted, FAR), running])
    },
    stop: () => {
      isStopped = true
      return running
    },
  }
}

/** Publishes in the cell, as a process does there. Undefined while the account is elsewhere, or moves. */
async function publishInCell({ pool }: TestDatabase, account: string): Promise<string | undefined> {
  const id = randomUUID()
  try {
    await pool.query(
      `with recorded as (
         insert into event_occurrence (document_id, event, account, resource, action, resource_id, created_at)
         values ($1, 'invoice.create', $2, 'invoice', 'create', 'x', now()) returning document_id
       ) insert into event_queue select document_id from recorded`,
      [id, account],
    )
    return id
  } catch (error) {
    if (isAccountRefused(error)) return undefined
    throw error
  }
}

/** Stands for the minutes until the next attempts of an account, in the database that has it. */
export async function hurryRetries({ pool }: TestDatabase, account: string): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    // A move waits for this transaction, as for every write.
    const { rows } = await client.query(`select pass_fence($1, 'begun') as passes`, [account])
    if (rows[0].passes)
      await client.query(
        `with due as (
           update webhook_dispatch_open set next_attempt_at = now()
           where account = $1 and status = 'retrying' and next_attempt_at > now() returning webhook
         ) update webhook_queue set visit_at = now() where webhook in (select webhook from due)`,
        [account],
      )
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

/** Stands for the time after which a killed process is lost. */
export async function loseProcess({ pool }: TestDatabase, pid: number): Promise<void> {
  await pool.query(
    `with lost as (
       update delivery_worker set lease_until = now() - interval '1 s' where worker_id like $1 returning worker_id
     ) update webhook_dispatch_open set last_attempt_at = last_attempt_at - interval '1 min'
       where lease_owner in (select worker_id from lost)`,
    [`%:${pid}:%`],
  )
}

/** Locks a table until it is let go: statements that write it wait. */
export async function lockTable({ pool }: TestDatabase, table: string): Promise<{ release(): Promise<void> }> {
  const client = await pool.connect()
  await client.query('set idle_in_transaction_session_timeout = 0')
  await client.query('begin')
  await client.query(`lock table ${table} in share mode`)
  return {
    release: async () => {
      await client.query('rollback')
      client.release()
    },
  }
}

/** Whether a statement about a table waits for a lock. */
export async function isWaitingFor({ pool }: TestDatabase, table: string): Promise<boolean> {
  const { rows } = await pool.query(
    `select from pg_locks where relation = $1::regclass and not granted and database =
       (select oid from pg_database where datname = current_database())`,
    [table],
  )
  return rows.length > 0
}
