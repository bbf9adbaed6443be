import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import type { ApiRequest } from './api-case.ts'
import { answerParent } from './child-process.ts'
import { monotonicMs } from './monotonic.ts'
import type { Publication } from './peers/product.ts'
import { PRODUCTS, type ProductName } from './peers/products.ts'
import { send } from './send.ts'

/** A program that publishes events over HTTP and notes when each was accepted. */

/**
 * How fast: `clients` requests at once for some time, each after the answer to the one before; `rate` requests a second,
 * whatever the answers take; or `count` events as fast as two clients send them, `batch` a request.
 */
export type Pace =
  | { clients: number; seconds: number }
  | { rate: number; seconds: number }
  | { batch: number; count: number }

/** Which events to publish, and where. Event number n has the resource id `r<run>-<n>` and the account n of `accounts`, in turn. */
export interface EventLoad {
  origin: string
  jwt: string
  eventType: string
  /** Accounts, or what stands for one in the API of another product (`Product.makeEndpoint`). */
  accounts: readonly string[]
  /** Whose API takes the events. Default: Signalbox. Batches are of Signalbox alone. */
  product?: ProductName
  run: number
  pace: Pace
}

/** Result. Instants are of `monotonicMs`. */
export interface EventLoadResult {
  startedAtMs: number
  /** The last answer. */
  endedAtMs: number
  /** When event number n was accepted; 0 when it was not. */
  acceptedAtMs: Float64Array
  accepted: number
  /** Requests that got no 2xx, and what the first of them got. */
  refused: number
  firstError: string | undefined
}

/** Events of one load at most: as many as the sink tells apart. */
const CAPACITY = 2_000_000
const BATCH_CLIENTS = 2
/** Connections of an open loop; a request waits when all are in use. */
const RATE_CONNECTIONS = 64

const acceptedAt = new Float64Array(CAPACITY)

function buildPublication({ accounts, eventType, product = 'signalbox', run }: EventLoad, n: number): Publication {
  return PRODUCTS[product].buildPublication(accounts[n % accounts.length]!, { type: eventType, id: `r${run}-${n}` })
}

function buildRequest({ jwt }: EventLoad, { path, body }: Publication): ApiRequest {
  return {
    method: 'POST',
    path,
    headers: { authorization: `Bearer ${jwt}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
}

/** Calls `step` with 0, 1, 2, ... from `clients` loops at once, as long as `isOpen` holds for the number. */
async function runClients(
  clients: number,
  isOpen: (number: number) => boolean,
  step: (number: number) => Promise<void>,
): Promise<number> {
  let next = 0
  const client = async () => {
    while (isOpen(next)) await step(next++)
  }
  await Promise.all(Array.from({ length: clients }, client))
  return next
}

async function runRate(
  { rate, seconds }: { rate: number; seconds: number },
  step: (n: number) => Promise<void>,
): Promise<number> {
  const count = Math.min(Math.round(rate * seconds), CAPACITY)
  const startedAt = monotonicMs()
  const sent: Promise<void>[] = []
  while (sent.length < count) {
    const due = Math.min(count, Math.floor(((monotonicMs() - startedAt) * rate) / 1000) + 1)
    while (sent.length < due) sent.push(step(sent.length))
    await sleep(1)
  }
  await Promise.all(sent)
  return count
}

async function publish(load: EventLoad): Promise<EventLoadResult> {
  const { pace } = load
  const connections = 'clients' in pace ? pace.clients : 'rate' in pace ? RATE_CONNECTIONS : BATCH_CLIENTS
  const pool = new Pool(load.origin, { connections, pipelining: 1 })
  let refused = 0
  let firstError: string | undefined
  const post = async (publication: Publication, from: number, to: number) => {
    try {
      await send(pool, buildRequest(load, publication), 'success')
      acceptedAt.fill(monotonicMs(), from, to)
    } catch (error) {
      refused += 1
      firstError ??= (error as Error).message
      acceptedAt.fill(0, from, to)
    }
  }
  const postOne = (n: number) => post(buildPublication(load, n), n, n + 1)
  const startedAtMs = monotonicMs()
  try {
    const count = await runPace(load, { postOne, post })
    const acceptedAtMs = acceptedAt.slice(0, count)
    const accepted = acceptedAtMs.reduce((sum, at) => sum + (at > 0 ? 1 : 0), 0)
    return { startedAtMs, endedAtMs: monotonicMs(), acceptedAtMs, accepted, refused, firstError }
  } finally {
    await pool.destroy()
  }
}

interface Posting {
  postOne: (n: number) => Promise<void>
  post: (publication: Publication, from: number, to: number) => Promise<void>
}

/** Publishes at the load's pace. Returns how many events were sent. */
async function runPace(load: EventLoad, { postOne, post }: Posting): Promise<number> {
  const { pace } = load
  if ('rate' in pace) return runRate(pace, postOne)
  if ('clients' in pace) {
    const endAt = monotonicMs() + pace.seconds * 1000
    return runClients(pace.clients, (n) => n < CAPACITY && monotonicMs() < endAt, postOne)
  }
  const postBatch = (number: number) => {
    const from = number * pace.batch
    const to = Math.min(from + pace.batch, pace.count)
    const publications = Array.from({ length: to - from }, (_, index) => buildPublication(load, from + index))
    return post({ path: publications[0]!.path, body: { events: publications.map(({ body }) => body) } }, from, to)
  }
  await runClients(BATCH_CLIENTS, (number) => number * pace.batch < pace.count, postBatch)
  return pace.count
}

answerParent(publish)
