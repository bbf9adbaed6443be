import pino from 'pino'
import type { Clock } from '../../src/clock.ts'
import { buildDispatcher, type Dispatcher } from '../../src/delivery/dispatcher.ts'
import type { IdMaker } from '../../src/id.ts'
import type { Keyring } from '../../src/keyring.ts'
import type { HttpSender, PostRequest } from '../../src/outbound/http-sender.ts'
import type { PostErrorClass, PostResult } from '../../src/outbound/post-result.ts'
import type { Database } from '../../src/postgres/database.ts'
import type { Random } from '../../src/random.ts'
import { buildContextTracer } from '../../src/tracing/tracer.ts'
import type { AttemptResult } from '../../src/webhook/delivery/outcome.ts'

/** Where a process goes down. `hang`: it stops recording, and comes back when another has taken its work. */
export type Fault = 'none' | 'after-claim' | 'before-post' | 'after-post' | 'before-record' | 'during-record' | 'hang'

/** What a receiver saw of one POST, and what it answers. */
export type Answer = (request: PostRequest, process: SimulatedProcess) => AttemptResult

/** A process with the role `dispatcher` that can be made to go down. */
export interface SimulatedProcess {
  dispatcher: Dispatcher
  /** Whether results of it may never be recorded, or too late. */
  isLost: boolean
  /** Resolves when it goes down. */
  lost: Promise<void>
  /** Brings a hung one back: what it holds is recorded now, late. */
  resume(): void
}

/** Starts a process that goes down at `fault`, once it has made `afterPosts` POSTs. */
export function startProcess(
  deps: { db: Database; clock: Clock; ids: IdMaker; random: Random; keyring: Keyring; answer: Answer },
  plan: { workerId: string; fault: Fault; afterPosts: number; concurrency: number; perWebhook: number },
): SimulatedProcess {
  const down = Promise.withResolvers<void>()
  let posts = 0
  let isSilent = false
  const sleepers: (() => void)[] = []
  // It sleeps only where the database refused, and only a process that comes back wakes from that.
  const clock: Clock = { now: deps.clock.now, sleep: () => new Promise((resolve) => sleepers.push(resolve)) }
  const goDown = () => {
    self.isLost = true
    isSilent = true
    down.resolve()
  }
  const onDispatcherPoint = (point: 'after-claim' | 'before-record' | 'during-record') => {
    if (point === plan.fault && posts >= plan.afterPosts) goDown()
    if (point === 'before-record' && plan.fault === 'hang' && posts >= plan.afterPosts) {
      plan.fault = 'none'
      goDown()
    }
    // A process that is gone writes nothing more.
    if (isSilent) throw new Error('the process is gone')
  }
  const post = (request: PostRequest): Promise<PostResult> => {
    if (plan.fault === 'before-post' && posts >= plan.afterPosts) goDown()
    if (isSilent) return new Promise(() => {})
    posts += 1
    const result = deps.answer(request, self)
    if (plan.fault === 'after-post' && posts > plan.afterPosts) goDown()
    return isSilent ? new Promise(() => {}) : Promise.resolve(toPostResult(result))
  }
  const sender: HttpSender = { post, idleConnectionCount: () => 0, close: async () => {} }
  const dispatcher = buildDispatcher({
    ...deps,
    clock,
    sender,
    workerId: plan.workerId,
    logger: pino({ level: 'silent' }),
    tracer: buildContextTracer(deps.random),
    version: '0.0.0',
    enableApiEventQueue: true,
    concurrency: plan.concurrency,
    perWebhook: plan.perWebhook,
    onDispatcherPoint,
  })
  const self: SimulatedProcess = {
    dispatcher,
    isLost: false,
    lost: down.promise,
    resume: () => {
      isSilent = false
      for (const wake of sleepers.splice(0)) wake()
    },
  }
  return self
}

function toPostResult(result: AttemptResult): PostResult {
  const timings = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 1 }
  if ('errorClass' in result)
    return { outcome: 'error', errorClass: result.errorClass as PostErrorClass, errorCode: 'X', durationMs: 1, timings }
  const { statusCode } = result
  const rest = { responseExcerpt: '', responseHeaders: {}, bodyEnd: 'complete' } as const
  return { outcome: 'response', statusCode, durationMs: 1, timings, ...rest }
}
