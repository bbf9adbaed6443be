import { isIPv6 } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sql } from 'kysely'
import type { Clock } from '../clock.ts'
import { type Database, isDatabaseUnavailable } from '../postgres/database.ts'
import type { Caller } from './caller.ts'
import { Problem } from './problem.ts'
import type { RouteDeclaration } from './route.ts'

const WINDOW_MS = 60_000
const SPENT_LIMIT = 10_000

/** The two checks of D8, in the form the shell takes them. */
export interface RateLimiter {
  limitAddress(route: RouteDeclaration, request: FastifyRequest, reply: FastifyReply): Promise<void>
  limitCaller(caller: Caller, reply: FastifyReply): Promise<void>
}

/** One limit as the `RateLimit-Policy` header names it. */
interface Policy {
  name: 'address' | 'strict' | 'caller'
  perMinute: number
}

/** Where one bucket stands after a request was counted. */
interface Standing {
  hits: number
  resetMs: number
}

/**
 * Builds the rate limits (D8), counted in the database so that all processes share them.
 *
 * Fixed windows of a minute: a bucket may spend its limit at the end of one window and again at the start of the next,
 * which a sliding estimate would not allow; in return one upsert counts, and "when may I go on" has an exact answer:
 * the windows of all limits begin at the full minute, so whoever waits out one limit is not stopped by another.
 * A bucket over its limit is remembered in this process until its window ends: a flood costs the database nothing.
 *
 * When the database is away, generous limits let the request pass: they guard load, not secrets, and what needs the
 * database answers 503 by itself. Strict limits refuse with it: guesses at passwords must not go uncounted.
 */
export function buildRateLimiter(options: {
  db: Database
  clock: Pick<Clock, 'now'>
  perMinute: number
  strictPerMinute: number
}): RateLimiter {
  const { db, clock, perMinute, strictPerMinute } = options
  const spent = new Map<string, number>()

  async function countHit(bucket: string, policy: Policy): Promise<Standing | undefined> {
    const nowMs = clock.now()
    const startMs = nowMs - (nowMs % WINDOW_MS)
    const resetMs = startMs + WINDOW_MS - nowMs
    if ((spent.get(bucket) ?? 0) > nowMs) return { hits: policy.perMinute + 1, resetMs }
    const hits = await addHit(db, bucket, new Date(startMs))
    if (hits > policy.perMinute) rememberSpent(spent, bucket, startMs + WINDOW_MS)
    return { hits, resetMs }
  }

  async function limit(subject: string, policy: Policy, reply: FastifyReply): Promise<void> {
    let standing: Standing | undefined
    try {
      standing = await countHit(`${policy.name}:${subject}`, policy)
    } catch (error) {
      if (policy.name !== 'strict' && isDatabaseUnavailable(error)) return
      throw error
    }
    if (standing) checkStanding(standing, policy, reply)
  }

  return {
    limitAddress: (route, request, reply) => {
      const policy: Policy = route.strictRateLimit
        ? { name: 'strict', perMinute: strictPerMinute }
        : { name: 'address', perMinute }
      return limit(groupAddress(request.ip), policy, reply)
    },
    limitCaller: (caller, reply) => limit(caller.apiKeyId ?? caller.userId, { name: 'caller', perMinute }, reply),
  }
}

/** Writes the headers of draft-ietf-httpapi-ratelimit-headers-11 (sections 3 and 4) and refuses what is over the limit. */
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

async function addHit(db: Database, bucket: string, windowStartedAt: Date): Promise<number> {
  const { hits } = await db
    .insertInto('rate_limit')
    .values({ bucket, window_started_at: windowStartedAt, hits: 1 })
    .onConflict((conflict) =>
      conflict.columns(['bucket', 'window_started_at']).doUpdateSet({ hits: sql<number>`rate_limit.hits + 1` }),
    )
    .returning('hits')
    .executeTakeFirstOrThrow()
  return hits
}

/** Bounded: under a flood from many addresses the oldest entry makes room, and is simply counted again. */
function rememberSpent(spent: Map<string, number>, bucket: string, untilMs: number): void {
  spent.delete(bucket)
  const oldest = spent.size >= SPENT_LIMIT ? spent.keys().next().value : undefined
  if (oldest !== undefined) spent.delete(oldest)
  spent.set(bucket, untilMs)
}

/**
 * What counts as one address: an IPv4 address, also in its mapped form; of IPv6 the /64, since one subscriber line
 * usually gets that many.
 */
export function groupAddress(address: string): string {
  const plain = address.replace(/%.*$/, '')
  if (!isIPv6(plain)) return plain
  // The URL parser writes every spelling in the one canonical form (RFC 5952), dotted tails as groups.
  const canonical = new URL(`http://[${plain}]`).hostname.slice(1, -1)
  const [head = '', tail] = canonical.split('::')
  const front = head === '' ? [] : head.split(':')
  const back = tail ? tail.split(':') : []
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length
  const groups = [...front, ...Array<string>(zeros).fill('0'), ...back]
  if (groups.slice(0, 5).every((group) => group === '0') && groups[5] === 'ffff') {
    return groups
      .slice(6)
      .map((group) => group.padStart(4, '0'))
      .join('')
      .match(/../g)!
      .map((byte) => Number.parseInt(byte, 16))
      .join('.')
  }
  return `${groups.slice(0, 4).join(':')}::/64`
}

/** Removes the windows that began before `before`; answers how many. For maintenance. */
export async function deleteOldRateWindows(db: Database, before: Date): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('rate_limit')
    .where('window_started_at', '<', before)
    .executeTakeFirst()
  return Number(numDeletedRows)
}
