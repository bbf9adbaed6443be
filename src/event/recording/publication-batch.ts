import type { Logger } from 'pino'
import { type Clock, systemClock } from '../../base/clock.ts'
import type { InlineRouting } from '../../delivery/routing/inline-routing.ts'
import type { RoutedRows } from '../../delivery/routing/routing.store.ts'
import { readRefusedAccounts } from '../../postgres/cell/account-fence.ts'
import { type Database, isDataRefused } from '../../postgres/statement/database.ts'
import { type Publications, recordAndRoute, recordPublicationBatch } from './publication-batch.store.ts'

/** Maximum number of running statements: while one waits for the disk, the next one fills. */
const STATEMENTS_AT_ONCE = 2

/** Time after which a statement no longer counts as running: it waits for a dead connection or a lock. */
const STUCK_MS = 500

const EVENTS_LIMIT = 2_000

/** Maximum number of events that a statement routes itself: the router's batches cost less for each. */
const INLINE_EVENTS = 16

export interface PublicationBatchDeps {
  logger: Logger
  /** The pool of requests. */
  db: Database
  /** The pool of the workers, with pinned plans, for routing statements. */
  workerDb: Database
  /** `Router.takeInline`. */
  takeInline: () => Promise<InlineRouting | undefined>
  /** Runs when publications are durable; `isQueued`: some wait for the router. */
  onRecorded: (isQueued: boolean) => void
  onEvents?: ((events: Publications['events']) => void) | undefined
  /** Bounds the time in which a statement counts as running: real time, independent of the clock. */
  rest?: Clock['sleep']
}

/** Records publications; those of concurrent requests share a statement. */
export interface PublicationBatch {
  /** Resolves when events and entries are durable; false, and nothing is stored, when a rule is broken. */
  record(publications: Publications): Promise<boolean>
}

interface Waiting {
  publications: Publications
  resolve: (isRecorded: boolean) => void
  reject: (error: unknown) => void
}

/** Builds the batch. A single request is recorded at once. */
export function buildPublicationBatch(deps: PublicationBatchDeps): PublicationBatch {
  const { rest = systemClock.sleep } = deps
  const waiting: Waiting[] = []
  let inFlight = 0

  async function run(): Promise<void> {
    inFlight += 1
    // The awaited promises never reject.
    while (waiting.length > 0) {
      const routing = countEvents(waiting) <= INLINE_EVENTS ? await findInline(deps) : undefined
      // Requests that arrived during the wait are included.
      const batch = takeBatch(waiting)
      if (batch.length === 0) await attend(deps, () => routing?.accept([]))
      else if (!(await keepsPlace(recordAll(batch, routing, deps)))) return
    }
    inFlight -= 1
  }

  /** Waits for a statement. False when it took so long that another one took its place. */
  async function keepsPlace(recorded: Promise<void>): Promise<boolean> {
    const over = new AbortController()
    let hasPlace = true
    void rest(STUCK_MS, over.signal).then(() => {
      if (over.signal.aborted) return
      hasPlace = false
      inFlight -= 1
      if (waiting.length > 0) void run()
    })
    await recorded
    over.abort('over')
    return hasPlace
  }

  return {
    record: (publications) =>
      new Promise((resolve, reject) => {
        waiting.push({ publications, resolve, reject })
        if (inFlight < STATEMENTS_AT_ONCE) void run()
      }),
  }
}

function takeBatch(waiting: Waiting[]): Waiting[] {
  let events = 0
  const end = waiting.findIndex(({ publications }, index) => {
    events += publications.events.length
    return index > 0 && events > EVENTS_LIMIT
  })
  return waiting.splice(0, end === -1 ? waiting.length : end)
}

const countEvents = (batch: readonly Waiting[]) =>
  batch.reduce((sum, entry) => sum + entry.publications.events.length, 0)

/** The right to route in the statement; without it the events are queued for the router. Never throws. */
async function findInline(deps: PublicationBatchDeps): Promise<InlineRouting | undefined> {
  let routing: InlineRouting | undefined
  await attend(deps, async () => {
    routing = await deps.takeInline()
  })
  return routing
}

/** Runs a step that must not affect the answer of a request. Never throws. */
async function attend({ logger }: PublicationBatchDeps, step: () => unknown): Promise<void> {
  try {
    await step()
  } catch (error) {
    logger.error({ err: error }, 'step of a publication failed: see docs/operations.md, publication steps')
  }
}

/** Settles every promise of a batch, and never throws. Faulty data of one request must not fail the others. */
async function recordAll(
  batch: readonly Waiting[],
  routing: InlineRouting | undefined,
  deps: PublicationBatchDeps,
): Promise<void> {
  let recorded: Recorded
  try {
    recorded = await record(batch, routing, deps)
  } catch (error) {
    const moving = new Set<string | null>(readRefusedAccounts(error))
    const others = batch.filter(({ publications }) => !publications.events.some((event) => moving.has(event.account)))
    if (moving.size > 0 && others.length < batch.length) {
      for (const request of batch) if (!others.includes(request)) request.reject(error)
      if (others.length > 0) await recordAll(others, undefined, deps)
    } else if (batch.length > 1 && isDataRefused(error)) {
      for (const request of batch) await recordAll([request], undefined, deps)
    } else {
      for (const request of batch) request.reject(error)
    }
    return
  }
  const { broken, isQueued, byPolicy } = recorded
  const accepted = attend(deps, () => byPolicy && routing?.accept(byPolicy))
  await attend(deps, () => deps.onRecorded(isQueued))
  await attend(deps, () =>
    deps.onEvents?.(batch.flatMap((entry, item) => (broken.has(item) ? [] : entry.publications.events))),
  )
  for (const [item, request] of batch.entries()) request.resolve(!broken.has(item))
  await accepted
}

interface Recorded {
  broken: ReadonlySet<number>
  isQueued: boolean
  /** Rows that the statement routed and claimed; undefined without any. */
  byPolicy?: readonly RoutedRows[]
}

/** Records a batch, and routes it in the same statement if this process has slots for its rows. */
async function record(
  batch: readonly Waiting[],
  routing: InlineRouting | undefined,
  deps: PublicationBatchDeps,
): Promise<Recorded> {
  const items = batch.map((entry) => entry.publications)
  if (!routing || countEvents(batch) > INLINE_EVENTS) {
    await attend(deps, () => routing?.accept([]))
    return recordPublicationBatch(deps.db, items)
  }
  return recordAndRoute(deps.workerDb, items, routing.policies).catch((error: unknown) => {
    routing.fail()
    throw error
  })
}
