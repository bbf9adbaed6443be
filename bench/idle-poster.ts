import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { parseAllowedTargets } from '../src/outbound/guard/callback-url.ts'
import { buildHttpSender } from '../src/outbound/send/http-sender.ts'
import { buildDice } from '../test/simulation/seed.ts'
import { buildBarePost } from './bare-post.ts'
import { answerParent } from './child-process.ts'
import { monotonicMs } from './monotonic.ts'

/** Posts to receivers at intervals around their idle limits, in a process of its own. */

/** Who posts: the sender of the service, or an undici agent as it comes. */
export type Way = 'service' | 'agent'

/** One load: the receivers of one kind have one limit. */
export interface IdleLoad {
  way: Way
  origins: readonly (readonly string[])[]
  limitsMs: readonly number[]
  seconds: number
  seed: number
}

/** Outcome of the POSTs to one kind of receiver. */
export interface IdleResult {
  posts: number
  /** POSTs without an answer. */
  failed: number
}

/** Intervals are from none to so many times the idle limit, the longest at most so long. */
const LONGEST_SHARE = 2
const LONGEST_MS = 4_000

type Post = (url: string) => Promise<boolean>

function openWay(way: Way): { post: Post; close: () => Promise<void> } {
  const { body, headers } = buildBarePost('idle')
  if (way === 'service') {
    const rules = { allowHttp: true, allowedPrivateTargets: parseAllowedTargets('127.0.0.0/8') }
    const sender = buildHttpSender({ lookup: () => Promise.reject(new Error('literals only')), rules })
    return {
      post: async (url) => (await sender.post({ url, headers, body })).outcome === 'response',
      close: () => sender.close(),
    }
  }
  const agent = new Agent()
  const post: Post = async (url) => {
    try {
      const answer = await request(url, { method: 'POST', headers, body, dispatcher: agent })
      await answer.body.dump()
      return true
    } catch {
      return false
    }
  }
  return { post, close: () => agent.close() }
}

async function postAll({ way, origins, limitsMs, seconds, seed }: IdleLoad): Promise<IdleResult[]> {
  const { post, close } = openWay(way)
  const results = origins.map(() => ({ posts: 0, failed: 0 }))
  const endsAt = monotonicMs() + seconds * 1_000
  const loops = origins.flatMap((ofKind, kind) =>
    ofKind.map(async (origin, number) => {
      const dice = buildDice(seed + 1_000 * kind + number)
      const longestMs = Math.min(LONGEST_MS, LONGEST_SHARE * (limitsMs[kind] ?? 0))
      while (monotonicMs() < endsAt) {
        await sleep(dice.roll() * longestMs)
        const isAnswered = await post(`${origin}/ok/1`)
        const result = results[kind]!
        result.posts += 1
        if (!isAnswered) result.failed += 1
      }
    }),
  )
  await Promise.all(loops)
  await close()
  return results
}

answerParent(postAll)
