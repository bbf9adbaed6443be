import type { Logger } from 'pino'
import { type Clock, systemClock } from '../../base/clock.ts'
import type { InlineRouting } from '../../delivery/routing/inline-routing.ts'
import type { RoutedRows } from '../../delivery/routing/routing.store.ts'
import { type Database, isDataRefused } from '../../postgres/statement/database.ts'
import { type Publications, recordAndRoute, recordPublicationBatch } from './publication-batch.store.ts'

/** Statements under way at once: while one waits for the disk, the next one fills. */
const STATEMENTS_AT_ONCE = 2

/**
 * After how long a statement no longer counts as under way: it waits for a connection that is dead, or for a lock. The others
 * must not wait behind two of these.
 */
const STUCK_MS = 500

/** Events of one statement at most, where it holds more than one request. */
const EVENTS_LIMIT = 2_000

/** Events that a statement routes itself at most: the router takes more of them at once, which costs less for each. */
const INLINE_EVENTS = 16

/** Dependencies of a batch. */
export interface PublicationBatchDeps {
  logger: Logger
  /** The pool of requests. */
  db: Database
  /** The pool of the workers, whose plans are pinned: statements that route run there. */
  workerDb: Database
  /** `Router.takeInline`. */
  takeInline: () => Promise<InlineRouting | undefined>
  /** Runs when publications are durable; `isQueued`: some wait for the router. */
  onRecorded: (isQueued: boolean) => void
  /** Takes the events of publications that are durable. */
  onEvents?: ((events: Publications['events']) => void) | undefined
  /** Bounds how long a statement counts as under way: real time in the service, whatever its clock. */
  rest?: Clock['sleep']
}

/** Records publications; those of requests that come at the same time share a statement. */
export interface PublicationBatch {
  /** Resolves when the events and audit entries are durable; false when a rule is broken, and nothing of them is kept. */
  record(publications: Publications): Promise<boolean>
}

interface Waiting {
  publications: Publications
  resolve: (isRecorded: boolean) => void
  reject: (error: unknown) => void
}

/** Builds the batch. A request that comes alone is recorded at once. */
export function buildPublicationBatch(deps: PublicationBatchDeps): PublicationBatch {
  const { rest = systemClock.sleep } = deps
  const waiting: Waiting[] = []
  let inFlight = 0

  async function run(): Promise<void> {
    inFlight += 1
    // Nothing that is awaited here rejects.
    while (waiting.length > 0) {
      const routing = countEvents(waiting) <= INLINE_EVENTS ? await findInline(deps) : undefined
      // Those that came while this waited for its turn are taken along.
      const batch = takeBatch(waiting)
      if (batch.length === 0) await attend(deps, () => routing?.accept([]))
      else if (!(await keepsPlace(recordAll(batch, routing, deps)))) return
    }
    inFlight -= 1
  }

  /** Waits for a statement. False when it took so long that its place was given to another. */
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

/** Runs a step that must not decide what a request is answered. Never throws. */
async function attend({ logger }: PublicationBatchDeps, step: () => unknown): Promise<void> {
  try {
    await step()
  } catch (error) {
    logger.error({ err: error }, 'step of a publication failed: see docs/operations.md, publication steps')
  }
}

/**
 * Settles every promise of a batch, and never throws. What is durable is answered as such, whatever comes after it. Data of
 * one request that the database does not take must not fail the others.
 */
async function recordAll(
  batch: readonly Waiting[],
  routing: InlineRouting | undefined,
  deps: PublicationBatchDeps,
): Promise<void> {
  let recorded: Recorded
  try {
    recorded = await record(batch, routing, deps)
  } catch (error) {
    if (batch.length > 1 && isDataRefused(error)) {
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
  /** The requests of the batch of which nothing is kept. */
  broken: ReadonlySet<number>
  isQueued: boolean
  /** Rows that the statement routed and claimed; undefined for none. */
  byPolicy?: readonly RoutedRows[]
}

/** Records a batch, and routes it in the same statement where this process can post what it is routed to. */
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
