import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../base/clock.ts'
import type { AccountId } from '../../base/id.ts'
import type { DirectoryState } from '../../postgres/cell/directory.store.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { RequestTrace } from '../../tracing/request-span.ts'
import type { Problem } from '../problem/problem.ts'
import type { IdempotencyKey, KeptAnswer } from '../route/idempotency.store.ts'
import type { Outcome, RefusalOutcome, RequestFacts, RouteDeclaration } from '../route/route.ts'
import type { Caller } from '../shape/caller.ts'
import type { ChangeShares } from './change-shares.ts'
import type { ReadSemaphore } from './read-semaphore.ts'

type Facts = RequestFacts<unknown, unknown, unknown>

/** A change that is about to be committed. */
export interface ChangeRecord {
  route: RouteDeclaration
  outcome: Outcome<unknown>
  request: Facts
  /** The idempotency key of the request with the answer to keep. */
  kept: { key: IdempotencyKey; answer: KeptAnswer } | undefined
}

/** A read that succeeded. */
export interface ReadRecord {
  route: RouteDeclaration
  outcome: Exclude<Outcome<unknown>, RefusalOutcome>
  request: Facts
}

/** The dependencies of the pipeline, built by the app. They keep `http/` free of features. */
export interface Pipeline {
  /** The pool of requests. Workers have their own. */
  db: Database
  /** The pool of lists and other long reads, with the statement timeout `READ_LIMIT_MS`. */
  readDb: Database
  /** The same on the replica, for routes that declare it; undefined without one. */
  replicaDb?: Database | undefined
  /** The databases that hold accounts; undefined in a service that can have no cells. */
  places?: Places | undefined
  runExpensiveRead: ReadSemaphore
  /** Limits the changes of one caller that hold a connection. */
  shareChanges: ChangeShares
  clock: Clock
  /** The caller of an `Authorization` header; undefined when there is none or it is not valid. */
  authenticate(authorization: string | undefined): Promise<Caller | undefined>
  /** The user at a page of the service that makes the call; undefined when there is none. */
  authenticatePage(headers: IncomingHttpHeaders): Promise<Caller | undefined>
  /**
   * Writes events, audit entry and stored answer in one statement, the last of the transaction `tx`: `commit` is sent with
   * it. Returns the cache keys that the transaction invalidates, for `afterCommit`.
   */
  recordChange(tx: Database, change: ChangeRecord): Promise<string>
  /** The audit entries of a success, in the form that the app records them in. */
  buildAudit(success: ReadRecord): readonly unknown[]
  /** Records the event of a read, when some webhook subscribes to it (docs/contract/events.md#events-of-reads). */
  recordRead(read: ReadRecord): Promise<void>
  /** Writes the audit entry of a refused call (403). Never throws. */
  recordRefusal(refusal: { route: RouteDeclaration; request: Facts; problem: Problem }): Promise<void>
  /** Runs after the commit of a change: invalidates caches and notifies the workers. Never throws. */
  afterCommit(invalidations: string): void
  /** Counts a request against its address; throws `rate_limited`. */
  limitAddress(route: RouteDeclaration, request: FastifyRequest, reply: FastifyReply): Promise<void> | void
  /** Counts a request that is refused before its limits against its address, in memory. Throws `rate_limited`. */
  limitVisit(request: FastifyRequest, reply: FastifyReply): void
  /** Counts a request against its caller; throws `rate_limited`. */
  limitCaller(caller: Caller, reply: FastifyReply): void
  /** The browser of a `Cookie` header, if the user that `body` names by `email` has signed in with it before. */
  findKnownBrowser(cookieHeader: string | undefined, body: unknown): KnownBrowser | undefined
  /**
   * Admits a request that needs a password hash. Throws 503 `overloaded` without a free place. The returned function
   * frees the place; its argument says whether the visitor was refused (401, 429).
   */
  admit(visitor: PlaceVisitor): (isRefused: boolean) => void
}

/** A database that holds accounts, as requests use it. */
export interface Place {
  /** The name of the cell; null for home. */
  cell: string | null
  /** The pipeline with this database in place of home. */
  pipeline: Pipeline
  /** The parts of features that are of this database; undefined for home. */
  parts: object | undefined
}

/** The databases that hold accounts (docs/decisions/0062-cells.md). */
export interface Places {
  home: Place
  /** Every database, home last, and the names of the cells that this process cannot use. */
  list(): Promise<{ places: readonly Place[]; missing: readonly string[] }>
  /** The database of an account. Throws 503 for a cell that this process cannot use. */
  find(account: AccountId): Promise<Place>
  /** The same of several accounts, with one read of the directory. */
  findAll(accounts: readonly AccountId[]): Promise<ReadonlyMap<AccountId, Place>>
  /** The same, with the name of a cell that this process cannot use in place of the 503. */
  locateAll(accounts: readonly AccountId[]): Promise<ReadonlyMap<AccountId, Place | { missing: string }>>
  /** Reads the directory again for this account. */
  forget(account: AccountId): void
  /** Where these accounts are now, past every cache, and with `withMoving` those that move. */
  readDirectory(known: readonly AccountId[], withMoving: boolean): Promise<DirectoryState>
}

/** A browser in which a user has signed in before. */
export interface KnownBrowser {
  id: string
  /** The time of that sign-in, in milliseconds. */
  since: number
}

/** The visitor: its network address, and its browser if the user has signed in with it before. */
export interface PlaceVisitor {
  address: string
  knownBrowser: KnownBrowser | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    trace?: RequestTrace
    /** The path of the route's declaration; of a route that the pipeline serves. */
    routePath?: string
  }
  interface FastifyContextConfig {
    route?: RouteDeclaration
  }
}
