import pg from 'pg'
import pino from 'pino'
import type { Clock } from '../../src/base/clock.ts'
import type { IdMaker } from '../../src/base/id.ts'
import type { Keyring } from '../../src/base/keyring.ts'
import type { Random } from '../../src/base/random.ts'
import { buildDispatcher } from '../../src/delivery/dispatcher/dispatcher.ts'
import type { AttemptResult } from '../../src/delivery/post/attempt-result.ts'
import { buildSecretCache } from '../../src/delivery/post/secret-cache.ts'
import { buildRouter } from '../../src/delivery/routing/router.ts'
import { buildWorkerLease } from '../../src/delivery/worker-lease.ts'
import type { EventRecord } from '../../src/event/occurrence/event.store.ts'
import { recordAndRoute, recordPublicationBatch } from '../../src/event/recording/publication-batch.store.ts'
import type { HttpSender, PostRequest } from '../../src/outbound/send/http-sender.ts'
import type { PostErrorClass, PostResult } from '../../src/outbound/send/post-result.ts'
import { INDEX_ONLY_PLANS, openDatabase } from '../../src/postgres/statement/database.ts'
import { buildContextTracer } from '../../src/tracing/tracer.ts'
import { buildWebhookPolicy } from '../../src/webhook/delivery/webhook-policy.ts'
import { buildHeaderCache } from '../../src/webhook/registry/own-headers.ts'
import { buildSigningKeyCache } from '../../src/webhook/registry/signing-key.ts'
import { secretContextOf } from '../../src/webhook/registry/webhook.ts'
import { TEST_CONNECT_LIMIT_MS } from '../harness/database/kept-pool.ts'
import type { ManualClock } from '../harness/run/manual-clock.ts'

/**
 * Where a process goes down. `hang`: it stops recording, and comes back when another has taken its work. `cut`: it loses
 * its listening connection while it posts, and works on.
 */
export type Fault = 'none' | 'after-claim' | 'before-post' | 'after-post' | 'before-record' | 'during-record' | Survived

type Survived = 'hang' | 'cut'

/** One POST at a receiver, which may have been held back since its claim, and the answer. */
export type Answer = (request: PostRequest, process: SimulatedProcess, wasHeld: boolean) => AttemptResult

/** How a process works, and where it goes down: at `fault`, once it has made `afterPosts` POSTs. */
export interface ProcessPlan {
  workerId: string
  fault: Fault
  afterPosts: number
  concurrency: number
  perWebhook: number
  /** Webhooks that one event is routed to in one statement; for more of them `partRows` in each. */
  rowsOfEvent: number
  partRows: number
  /** Its dispatcher runs by itself, so that it claims rows as it routes them. */
  isRunning: boolean
}

/** A process with the role `dispatcher`, with connections of its own, that can be made to go down. */
export interface SimulatedProcess {
  plan: ProcessPlan
  /** Whether results of it may never be recorded, or too late. */
  isLost: boolean
  /** It does nothing, and its connections stay. */
  isHung: boolean
  /** Routes what waits. */
  route(): Promise<void>
  /** Records events, and routes them in the same statement while it has room. */
  publish(events: readonly EventRecord[]): Promise<void>
  /** Posts what is due and records it; resolves early when the process goes down. */
  work(): Promise<void>
  /** Says that it is alive, as each process does every second. */
  renew(): Promise<void>
  /** Lets its POSTs wait until `release`. */
  hold(): void
  release(): void
  /** Ends its listening connection, and with it its lock. */
  cut(): void
  /** Brings a hung one back: what it holds is recorded now, late. */
  resume(): void
  kill(): void
  /** Whether nothing of it is under way, but for what waits for `release` or `resume`. */
  isIdle(): boolean
  /** Current step, for an error. */
  describe(): string
}

/** State that all processes of a simulation share. */
export interface ProcessDeps {
  connectionString: string
  clock: Clock & Pick<ManualClock, 'advance'>
  ids: IdMaker
  random: Random
  keyring: Keyring
  answer: Answer
  /** Gets what a process that is not lost logs as an error. */
  onError: (line: string) => void
}

/** Starts a process. */
export async function startProcess(deps: ProcessDeps, plan: ProcessPlan): Promise<SimulatedProcess> {
  const down = Promise.withResolvers<void>()
  const resumed = Promise.withResolvers<void>()
  const connections = await openConnections(deps.connectionString, plan.workerId, resumed.promise)
  let woken = Promise.withResolvers<void>()
  const wake = () => {
    woken.resolve()
    woken = Promise.withResolvers()
  }
  // Sleeps end when the test runs the process, or resumes it after a hang.
  const clock: Clock = { now: deps.clock.now, sleep: () => woken.promise }
  let gate = Promise.resolve()
  let openGate = () => {}
  let posts = 0
  let isSilent = false
  let isHeld = false

  const goDown = () => {
    self.isLost = true
    isSilent = true
    self.isHung = plan.fault === 'hang'
    if (self.isHung) connections.block()
    else connections.destroy()
    down.resolve()
  }
  const onDispatcherPoint = (point: 'after-claim' | 'before-record' | 'during-record') => {
    const isHang = point === 'before-record' && plan.fault === 'hang'
    if (!self.isLost && (point === plan.fault || isHang) && posts >= plan.afterPosts) goDown()
    // A process that is gone writes nothing more.
    if (isSilent) throw new Error('the process is gone')
  }
  const post = async (request: PostRequest): Promise<PostResult> => {
    const wasHeld = isHeld
    do {
      await gate
      await rest()
    } while (isHeld)
    // Each POST ends at an instant of its own, for deliveries count in the order in which they ended.
    deps.clock.advance(1)
    if (!isSilent && plan.fault === 'before-post' && posts >= plan.afterPosts) goDown()
    if (isSilent) return new Promise(() => {})
    posts += 1
    const result = deps.answer(request, self, wasHeld)
    if (plan.fault === 'after-post' && posts > plan.afterPosts) goDown()
    return isSilent ? new Promise(() => {}) : toPostResult(result)
  }
  const sender: HttpSender = { post, idleConnectionCount: () => 0, close: async () => {} }
  const onLine = (line: string) => {
    if (!self.isLost) deps.onError(`${plan.workerId}: ${line}`)
  }
  const logger = pino({ level: 'error' }, { write: onLine })
  const { db } = connections
  const lease = buildWorkerLease({ db, clock, workerId: plan.workerId, hasLock: connections.hasLock })
  const dispatcher = buildDispatcher({
    policy: buildWebhookPolicy({
      ...deps,
      ...plan,
      db,
      clock,
      logger,
      sender,
      secrets: buildSecretCache(deps.keyring, secretContextOf),
      headers: buildHeaderCache(deps.keyring),
      signingKeys: buildSigningKeyCache(deps.keyring),
      tracer: buildContextTracer(deps.random),
      userAgent: 'test',
      enableApiEventQueue: true,
      onRecording: () => onDispatcherPoint('during-record'),
    }),
    clock,
    rest,
    logger,
    workerId: plan.workerId,
    lease,
    isEnabled: true,
    onDispatcherPoint,
  })
  const router = buildRouter({ clock, rest, db, logger, dispatchers: [dispatcher], partRows: plan.partRows })
  const publish = async (events: readonly EventRecord[]) => {
    const items = [{ events, pairs: [], auditEntries: [] }]
    const routing = await router.takeInline()
    if (!routing) return void (await recordPublicationBatch(db, items))
    const { byPolicy } = await recordAndRoute(db, items, routing.policies)
    await routing.accept(byPolicy)
  }
  /** Unfinished work of a process that is gone is no fault. */
  const untilLost = async (work: Promise<unknown>) => {
    const done = work.catch((error: unknown) => {
      if (!self.isLost) throw error
    })
    await Promise.race([done, down.promise])
  }
  const self: SimulatedProcess = {
    plan,
    isLost: false,
    isHung: false,
    route: () => untilLost(router.drain()),
    publish: (events) => untilLost(publish(events)),
    work: async () => {
      wake()
      if (plan.isRunning) dispatcher.notify()
      else await untilLost(dispatcher.drain())
    },
    renew: () => untilLost(lease.renew()),
    hold: () => {
      if (isHeld) return
      isHeld = true
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = promise
      openGate = resolve
    },
    release: () => {
      isHeld = false
      openGate()
    },
    cut: connections.cut,
    resume: () => {
      isSilent = false
      self.isHung = false
      resumed.resolve()
      wake()
    },
    kill: () => {
      self.isLost = true
      isSilent = true
      connections.destroy()
      down.resolve()
    },
    describe: () =>
      `${JSON.stringify(plan)} ${dispatcher.inFlight()} in flight, ${connections.describe()}, held ${isHeld}`,
    isIdle: () => connections.isIdle() && (self.isLost || isHeld || dispatcher.inFlight() === 0),
  }
  await lease.renew()
  if (plan.isRunning) void dispatcher.run()
  return self
}

/** Rests between batches pass at once. */
const rest = () => new Promise<void>((resolve) => setImmediate(resolve))

type State = 'open' | 'blocked' | 'destroyed'

/** The connections of one process: a pool, and one that holds the lock of the worker. */
async function openConnections(connectionString: string, workerId: string, resumed: Promise<void>) {
  const settings = { connectionString, applicationName: workerId, settings: INDEX_ONLY_PLANS, onError: () => {} }
  const { db, pool } = openDatabase({ ...settings, size: 3, connectLimitMs: TEST_CONNECT_LIMIT_MS })
  const clients = new Set<pg.PoolClient>()
  pool.on('connect', (client) => clients.add(client))
  let state: State = 'open'
  const connect = pool.connect.bind(pool) as () => Promise<pg.PoolClient>
  Object.assign(pool, {
    connect: async () => {
      if (state === 'blocked') await resumed
      if (state === 'destroyed') return new Promise(() => {})
      let client = await connect()
      if ((state as State) === 'blocked') {
        client.release()
        await resumed
        client = await connect()
      }
      if ((state as State) === 'destroyed') {
        destroySocket(client)
        return new Promise(() => {})
      }
      return client
    },
  })
  const listener = new pg.Client({ connectionString, application_name: workerId })
  let isListening = true
  listener.on('error', () => {})
  listener.on('end', () => {
    isListening = false
  })
  await listener.connect()
  await listener.query('select pg_advisory_lock_shared(hashtextextended($1, 0))', [workerId])
  return {
    db,
    hasLock: () => isListening,
    cut: () => destroySocket(listener),
    block: () => {
      state = 'blocked'
    },
    destroy: () => {
      state = 'destroyed'
      for (const client of [listener, ...clients]) destroySocket(client)
    },
    describe: () =>
      `${state}, ${pool.idleCount} of ${pool.totalCount} connections idle, ${pool.waitingCount} waited for`,
    isIdle: () => state === 'destroyed' || (pool.idleCount === pool.totalCount && pool.waitingCount === 0),
  }
}

/** Ends a connection as a machine that vanishes does: nothing is said to the server. */
function destroySocket(client: pg.ClientBase): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}

function toPostResult(result: AttemptResult): PostResult {
  const timings = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 1 }
  if ('errorClass' in result)
    return { outcome: 'error', errorClass: result.errorClass as PostErrorClass, errorCode: 'X', durationMs: 1, timings }
  const statusCode = 'statusCode' in result ? result.statusCode : 200
  const rest = { responseExcerpt: '', responseHeaders: {}, bodyEnd: 'complete' } as const
  return { outcome: 'response', statusCode, durationMs: 1, timings, ...rest }
}
