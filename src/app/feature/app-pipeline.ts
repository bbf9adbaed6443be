import type { IdMaker } from '../../base/id.ts'
import type { EqualEntries } from '../../event/recording/equal-entries.ts'
import { buildRecorders, type RecordDeps } from '../../event/recording/record-change.ts'
import { buildChangeShares } from '../../http/pipeline/change-shares.ts'
import type { Pipeline } from '../../http/pipeline/pipeline-deps.ts'
import { buildReadSemaphore } from '../../http/pipeline/read-semaphore.ts'
import type { RateLimiter } from '../../http/rate-limit/rate-limit.ts'
import { buildAuthenticate } from '../../identity/caller/authenticate.ts'
import { buildPageAuthenticate } from '../../identity/pages/browser/page-caller.ts'
import type { PasswordHashing } from '../../identity/password/password.ts'
import { findPermissionsOf } from '../../oauth/scope/scope.ts'
import { readInvalidations } from '../../postgres/connection/invalidated-cache.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { AppOptions } from '../part/app-options.ts'
import type { Caches } from '../part/caches.ts'
import { buildBrowserParts, buildKnownBrowserFinder } from './pages.ts'
import { ROUTE_TREE } from './route-tree.ts'

/** A database in place of home, for the pipeline of its requests. */
export interface PipelineDatabase {
  db: Database
  readDb: Database
  /** Whether some active webhook, here or in home, subscribes to the event type of a read. */
  isReadSubscribed: RecordDeps['isReadSubscribed']
  notify: () => void
}

/** The pipeline of home, and that of requests in another database. */
export interface BuiltPipeline {
  pipeline: Pipeline
  pipelineIn: (database: PipelineDatabase) => Pipeline
}

/** Builds what the pipeline of every request uses. */
export function buildPipeline(parts: {
  options: AppOptions
  ids: IdMaker
  baseUrl: () => string
  caches: Caches
  limiter: RateLimiter
  equalEntries: EqualEntries
  passwords: PasswordHashing
  notify: () => void
  onRecorded: RecordDeps['onRecorded']
}): BuiltPipeline {
  const { options, ids, baseUrl, caches, limiter, equalEntries, passwords, notify, onRecorded } = parts
  const { config, secrets, clock, logger } = options
  const { db } = options.database
  const recording = {
    ids,
    logger,
    onRecorded,
    equalEntries,
    enableApiEventQueue: config.enableApiEventQueue,
    isReadSubscribed: (eventType: string) => caches.reads.has(eventType),
  }
  const authenticate = buildAuthenticate({
    db,
    clock,
    sessionSecrets: secrets.sessionJwt,
    issuer: baseUrl,
    cache: caches.callers,
    findPermissionsOf,
  })
  const browserParts = { secrets: secrets.sessionJwt, random: options.random, issuer: baseUrl, clock }
  const afterCommit = (invalidations: string, wake: () => void) => {
    options.onCrashPoint?.('after-change')
    // Invalidates the own caches before the answer; other processes are notified by NOTIFY.
    for (const change of readInvalidations(invalidations)) caches.invalidate(change)
    wake()
  }
  const pipeline: Pipeline = {
    db,
    readDb: (options.readDatabase ?? options.database).db,
    replicaDb: options.replicaDatabase?.db,
    runExpensiveRead: buildReadSemaphore({ atOnce: config.databaseReadPoolSize - 1, clock }),
    shareChanges: buildChangeShares({ connections: config.databasePoolSize, clock }),
    clock,
    authenticate,
    authenticatePage: buildPageAuthenticate({ ...buildBrowserParts(config, browserParts), authenticate, baseUrl }),
    ...buildRecorders(recording, db, ROUTE_TREE),
    afterCommit: (invalidations) => afterCommit(invalidations, notify),
    limitAddress: limiter.limitAddress,
    limitVisit: limiter.limitVisit,
    limitCaller: limiter.limitCaller,
    findKnownBrowser: buildKnownBrowserFinder(config, browserParts),
    admit: passwords.admit,
  }
  const pipelineIn = (database: PipelineDatabase): Pipeline => ({
    ...pipeline,
    ...{ db: database.db, readDb: database.readDb, replicaDb: undefined },
    ...buildRecorders({ ...recording, isReadSubscribed: database.isReadSubscribed }, database.db, ROUTE_TREE),
    // Refused calls are recorded in home.
    recordRefusal: pipeline.recordRefusal,
    afterCommit: (invalidations) => afterCommit(invalidations, database.notify),
  })
  return { pipeline, pipelineIn }
}
