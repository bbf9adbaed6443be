import { buildAuthenticate } from '../access/authenticate.ts'
import { buildCallerCache, type CallerCache } from '../access/caller-cache.ts'
import { buildLimitCache, type LimitCache } from '../account/limit-cache.ts'
import type { EqualEntries } from '../audit/equal-entries.ts'
import { listSubscribedTypes } from '../event/event.store.ts'
import { buildReadSubscriptions, type ReadSubscriptions } from '../event/read-subscriptions.ts'
import type { Caller } from '../http/caller.ts'
import type { Pipeline } from '../http/pipeline-deps.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import { buildReadGate } from '../http/read-gate.ts'
import type { IdMaker } from '../id.ts'
import { buildClientCache, type ClientCache } from '../oauth/client-cache.ts'
import type { Database } from '../postgres/database.ts'
import type { AppOptions } from './app.ts'
import { buildKnownBrowserFinder } from './pages.ts'
import { buildRecorders, type RecordDeps } from './record-change.ts'
import { ROUTE_TREE } from './route-tree.ts'

/** The caches of this process, which a trigger's note of a change invalidates. */
export interface Held {
  callers: CallerCache<Caller>
  clients: ClientCache
  limits: LimitCache
  reads: ReadSubscriptions
  apply: (note: string) => void
}

/** Builds the caches. `isProven`: whether notes of changes are proven to arrive. */
export function buildHeld(db: Database, isProven: () => boolean): Held {
  const callers = buildCallerCache<Caller>(isProven)
  const reads = buildReadSubscriptions({ isProven, list: () => listSubscribedTypes(db) })
  const clients = buildClientCache(isProven)
  const limits = buildLimitCache(isProven)
  const apply = (note: string) => {
    callers.apply(note)
    clients.apply(note)
    limits.apply(note)
    reads.apply(note)
  }
  return { callers, clients, limits, reads, apply }
}

/** Builds what the pipeline of every request uses. */
export function buildPipeline(parts: {
  options: AppOptions
  ids: IdMaker
  baseUrl: () => string
  held: Held
  limiter: RateLimiter
  equalEntries: EqualEntries
  notify: () => void
  /** Takes the events of changes. */
  onRecorded: RecordDeps['onRecorded']
}): Pipeline {
  const { options, ids, baseUrl, held, limiter, equalEntries, notify, onRecorded } = parts
  const { config, secrets, clock, logger } = options
  const { db } = options.database
  const recording = {
    ids,
    logger,
    onRecorded,
    equalEntries,
    enableApiEventQueue: config.enableApiEventQueue,
    isReadSubscribed: (eventType: string) => held.reads.has(eventType),
  }
  return {
    db,
    readDb: (options.readDatabase ?? options.database).db,
    readInTurn: buildReadGate({ atOnce: config.databaseReadPoolSize - 1, clock }),
    clock,
    authenticate: buildAuthenticate({
      db,
      clock,
      sessionSecrets: secrets.sessionJwt,
      issuer: baseUrl,
      cache: held.callers,
    }),
    ...buildRecorders(recording, db, ROUTE_TREE),
    afterCommit: (notes) => {
      options.onCrashPoint?.('after-change')
      // Invalidates the own caches before the answer; other processes are notified by NOTIFY.
      for (const note of notes === '' ? [] : notes.split(',')) held.apply(note)
      notify()
    },
    limitAddress: limiter.limitAddress,
    limitVisit: limiter.limitVisit,
    limitCaller: limiter.limitCaller,
    findKnownBrowser: buildKnownBrowserFinder(config, { secrets: secrets.sessionJwt, random: options.random }),
  }
}
