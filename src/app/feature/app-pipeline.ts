import type { IdMaker } from '../../base/id.ts'
import { listSubscribedTypes } from '../../event/occurrence/event.store.ts'
import { buildReadSubscriptions, type ReadSubscriptions } from '../../event/occurrence/read-subscriptions.ts'
import type { EqualEntries } from '../../event/recording/equal-entries.ts'
import { buildRecorders, type RecordDeps } from '../../event/recording/record-change.ts'
import type { Pipeline } from '../../http/pipeline/pipeline-deps.ts'
import { buildReadGate } from '../../http/pipeline/read-gate.ts'
import type { RateLimiter } from '../../http/rate-limit/rate-limit.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { buildLimitCache, type LimitCache } from '../../identity/account/limit/limit-cache.ts'
import { buildAuthenticate } from '../../identity/caller/authenticate.ts'
import { buildCallerCache, type CallerCache } from '../../identity/caller/caller-cache.ts'
import type { PasswordHashing } from '../../identity/password/password.ts'
import { buildClientCache, type ClientCache } from '../../oauth/client/client-cache.ts'
import { findPermissionsOf } from '../../oauth/scope/scope.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { AppOptions } from '../part/app-options.ts'
import { buildKnownBrowserFinder } from './pages.ts'
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
  passwords: PasswordHashing
  notify: () => void
  /** Takes the events of changes. */
  onRecorded: RecordDeps['onRecorded']
}): Pipeline {
  const { options, ids, baseUrl, held, limiter, equalEntries, passwords, notify, onRecorded } = parts
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
      findPermissionsOf,
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
    findKnownBrowser: buildKnownBrowserFinder(config, {
      secrets: secrets.sessionJwt,
      random: options.random,
      issuer: baseUrl,
      clock,
    }),
    takePlace: passwords.takePlace,
  }
}
