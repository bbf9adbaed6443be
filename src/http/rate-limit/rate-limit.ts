import type { FastifyReply, FastifyRequest } from 'fastify'
import { buildCache, type Cache } from '../../base/cache.ts'
import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { Problem } from '../problem/problem.ts'
import { groupAddress } from '../request/address-group.ts'
import type { RouteDeclaration } from '../route/route.ts'
import { type Caller, nameHolder } from '../shape/caller.ts'
import { addHit, addHits } from './rate-limit.store.ts'

/** The window of every limit. All begin at the full minute, so one `Retry-After` applies to all. */
const WINDOW_MS = 60_000

/** Interval at which a process exchanges its counts with the others (docs/contract/api.md#generous-limits). */
const EXCHANGE_EVERY_MS = 1_000

/** Unreported share of a limit, 1/100, at which a bucket is exchanged: a few requests cost the database nothing. */
const EXCHANGED_SHARE = 100

/** Maximum number of buckets of one process; an evicted one restarts at zero. */
const BUCKETS_LIMIT = 100_000

/** Rate limits as the pipeline checks them, and their exchange between processes. */
export interface RateLimiter {
  /** Counts a request against its address. Throws `rate_limited`; for a strict route also when it cannot be counted. */
  limitAddress(
    route: Pick<RouteDeclaration, 'strictRateLimit'>,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> | void
  /** Counts a request outside the route tree against its address. Throws `rate_limited`. */
  limitVisit(request: FastifyRequest, reply: FastifyReply): void
  /** Counts a request against its caller. Throws `rate_limited`. */
  limitCaller(caller: Caller, reply: FastifyReply): void
  /**
   * Counts hits against buckets of a feature, all of them or, when one would exceed its limit, none. Returns that one, and
   * the seconds until its window ends.
   */
  take<Hits extends BucketHits>(all: readonly Hits[]): { charge: Hits; resetSeconds: number } | undefined
  /** Adds what this process has counted to the shared sums and reads them. */
  exchange(): Promise<void>
  /** Exchanges about once a second until stopped. */
  run(): Promise<void>
  stop(): void
}

/** Hits of a bucket of a feature. */
export interface BucketHits {
  bucket: string
  hits: number
  perMinute: number
}

/** A limit in the form of the `RateLimit-Policy` header. */
interface Policy {
  name: 'address' | 'strict' | 'caller'
  perMinute: number
}

/** The counts of one process for a bucket in the present window. */
interface Bucket {
  /** Hits of all processes, as of the last exchange. */
  shared: number
  /** Hits of this process since then. */
  own: number
}

/**
 * Builds the rate limits. A generous limit is counted in memory, and the processes exchange their sums through the
 * database about once a second: a request pays no round trip, and the processes together may exceed a limit by one
 * second's traffic and the unexchanged counts. A strict limit is counted in the database before the request is handled;
 * when that fails, the request fails, so that every guess at a password is counted.
 *
 * Fixed windows of a minute: a bucket may spend its limit at the end of one window and again at the start of the next,
 * which a sliding estimate would not allow; in return `Retry-After` is exact (docs/decisions/0008-fixed-rate-windows.md).
 */
export function buildRateLimiter(options: {
  db: Database
  clock: Clock
  perMinute: number
  strictPerMinute: number
  onError?: (error: unknown) => void
}): RateLimiter {
  const { db, clock, perMinute, strictPerMinute, onError } = options
  /** The current window: all begin together. */
  let current: { startMs: number; buckets: Cache<string, Bucket>; due: Map<string, Bucket> } | undefined
  const stopping = new AbortController()
  const strict: Policy = { name: 'strict', perMinute: strictPerMinute }
  const address: Policy = { name: 'address', perMinute }
  const callers: Policy = { name: 'caller', perMinute }

  function takeBucket(name: string, startMs: number): Bucket {
    if (current?.startMs !== startMs) current = openWindow(startMs)
    const { buckets } = current
    const known = buckets.find(name)
    if (known) return known
    const fresh = { shared: 0, own: 0 }
    buckets.put(name, fresh)
    return fresh
  }

  function addOwn(name: string, bucket: Bucket, { hits, perMinute }: { hits: number; perMinute: number }): void {
    bucket.own += hits
    if (bucket.own * EXCHANGED_SHARE >= perMinute) current?.due.set(name, bucket)
  }

  function countInMemory(subject: string, policy: Policy, reply: FastifyReply): void {
    const window = findWindow(clock.now())
    const name = `${policy.name}:${subject}`
    const bucket = takeBucket(name, window.startMs)
    addOwn(name, bucket, { hits: 1, perMinute: policy.perMinute })
    checkStanding({ hits: bucket.shared + bucket.own, resetMs: window.resetMs }, policy, reply)
  }

  async function countInDatabase(at: Database, subject: string, reply: FastifyReply): Promise<void> {
    const window = findWindow(clock.now())
    const name = `${strict.name}:${subject}`
    const bucket = takeBucket(name, window.startMs)
    // An exhausted bucket stays so until its window ends: a flood writes nothing to the database.
    if (bucket.shared <= strict.perMinute) bucket.shared = await addHit(at, name, new Date(window.startMs))
    else bucket.shared += 1
    checkStanding({ hits: bucket.shared, resetMs: window.resetMs }, strict, reply)
  }

  /** Refuses at once when this process knows that the limit is spent; else leaves the count to the operation. */
  function countLater(subject: string, request: FastifyRequest, reply: FastifyReply): Promise<void> | void {
    const bucket = takeBucket(`${strict.name}:${subject}`, findWindow(clock.now()).startMs)
    if (bucket.shared > strict.perMinute) return countInDatabase(db, subject, reply)
    let counted: Promise<void> | undefined
    request.countLater = (tx) => {
      counted ??= countInDatabase(tx ?? db, subject, reply)
      return counted
    }
  }

  function take<Hits extends BucketHits>(all: readonly Hits[]): { charge: Hits; resetSeconds: number } | undefined {
    const { startMs, resetMs } = findWindow(clock.now())
    const taken = all.map((item) => ({ charge: item, bucket: takeBucket(item.bucket, startMs) }))
    const exceeded = taken.find(({ charge, bucket }) => bucket.shared + bucket.own + charge.hits > charge.perMinute)
    if (exceeded) return { charge: exceeded.charge, resetSeconds: Math.ceil(resetMs / 1000) }
    for (const { charge, bucket } of taken) addOwn(charge.bucket, bucket, charge)
    return undefined
  }

  async function exchange(): Promise<void> {
    if (!current || current.startMs !== findWindow(clock.now()).startMs) return
    const { startMs, due } = current
    const counted = [...due].map(([name, bucket]) => ({ name, bucket, hits: bucket.own }))
    if (counted.length === 0) return
    const sums = await addHits(db, new Date(startMs), counted)
    for (const { name, bucket, hits } of counted) {
      bucket.own -= hits
      bucket.shared = sums.get(name) ?? bucket.shared + hits
      if (bucket.own === 0) due.delete(name)
    }
  }

  return {
    limitAddress: (route, request, reply) => {
      const subject = groupAddress(request.ip)
      if (route.strictRateLimit === 'with-operation') return countLater(subject, request, reply)
      return route.strictRateLimit ? countInDatabase(db, subject, reply) : countInMemory(subject, address, reply)
    },
    limitVisit: (request, reply) => countInMemory(groupAddress(request.ip), address, reply),
    limitCaller: (caller, reply) => countInMemory(nameHolder(caller), callers, reply),
    take,
    exchange,
    run: async () => {
      while (!stopping.signal.aborted) {
        await clock.sleep(EXCHANGE_EVERY_MS, stopping.signal)
        // The counts stay here and are part of the next exchange.
        if (!stopping.signal.aborted) await exchange().catch((error: unknown) => onError?.(error))
      }
    },
    stop: () => stopping.abort(),
  }
}

/** An empty window. A bucket that makes room is not exchanged any more. */
function openWindow(startMs: number) {
  const due = new Map<string, Bucket>()
  return {
    startMs,
    buckets: buildCache<string, Bucket>({ limit: BUCKETS_LIMIT, onGone: (name) => due.delete(name) }),
    due,
  }
}

function findWindow(nowMs: number): { startMs: number; resetMs: number } {
  const startMs = nowMs - (nowMs % WINDOW_MS)
  return { startMs, resetMs: startMs + WINDOW_MS - nowMs }
}

interface Standing {
  hits: number
  resetMs: number
}

/** Sets the headers of draft-ietf-httpapi-ratelimit-headers-11 (sections 3 and 4), and throws when a limit is exceeded. */
function checkStanding({ hits, resetMs }: Standing, policy: Policy, reply: FastifyReply): void {
  const resetSeconds = Math.ceil(resetMs / 1000)
  appendItem(reply, 'ratelimit-policy', `"${policy.name}";q=${policy.perMinute};w=${WINDOW_MS / 1000}`)
  appendItem(reply, 'ratelimit', `"${policy.name}";r=${Math.max(0, policy.perMinute - hits)};t=${resetSeconds}`)
  if (hits <= policy.perMinute) return
  const detail = `The limit "${policy.name}" of ${policy.perMinute} requests a minute is spent. Go on in ${resetSeconds} s.`
  throw new Problem('rate_limited', detail, { headers: { 'retry-after': String(resetSeconds) } })
}

/** Both headers are lists: one item for each limit that was checked. */
function appendItem(reply: FastifyReply, name: string, item: string): void {
  const before = reply.getHeader(name)
  reply.header(name, before ? `${before}, ${item}` : item)
}

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Counts the request against its strict limit, idempotently: with the first statement of the transaction `tx`, or
     * alone. Rejects with `rate_limited`. Only for a route that counts with its operation.
     */
    countLater?: (tx?: Database) => Promise<void>
  }
}
