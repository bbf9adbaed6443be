import type { Database } from '../../postgres/statement/database.ts'
import type { ListFields, Listing } from '../listing/listing.ts'
import type { MergedReads, MergeSource } from '../listing/merge.ts'
import type { ProblemCode } from '../problem/problem.ts'
import type { Freshness } from '../request/freshness.ts'
import type { Caller, PermissionScope } from '../shape/caller.ts'
import type { Static, TSchema } from '../shape/schema-type.ts'
import type { CellKey, ReadEach } from './cell-key.ts'
import type { Outcome } from './outcome.ts'
/** Whether the events of a route have an owning account, resolved when they are recorded (docs/contract/events.md#catalogue-fields). */
export type AccountScope = 'account' | 'none'

/** The parts of a request that are known before any database access. */
export interface RequestFacts<Params, Query, Body> {
  params: Params
  query: Query
  body: Body
  /** The caller. A route with `access: 'public'` has none; reading it then throws. */
  caller: Caller
  /** The caller, or undefined on a public route. */
  signedIn: Caller | undefined
  /** The permission of the route: `resource:action`. */
  permission: string
  /** The scope of the route's permission for the caller; empty for a caller without it, and on a public route. */
  scope: PermissionScope
  /** The instant of the request; every row that the request writes has it. */
  now: Date
  /** Filters, sort and page of a list route. */
  listing: Listing
  /** The id that is echoed and logged: the client's own, where it sent one. */
  requestId: string
  /** The id that the service made: `requestId`, unless the client chose that one. */
  ownRequestId: string
  /** The trace context that is stored with the events of this request; null when it has none. */
  trace: string | null
  /** The network address of the client. */
  address: string
  headers: Record<string, string | string[] | undefined>
  /** The bytes of the body, for signatures. */
  rawBody: Buffer
  /** For a route whose answer waits for something to happen, or for its client to take it. */
  waiting: RequestWait
}

/** Functions for a request that lasts. */
export interface RequestWait {
  /** Authenticates the caller again, and returns the scope of the route's permission. Throws 401 and 403. */
  recheck: () => Promise<PermissionScope>
  /** Calls `onClosed` when the client's connection ends; until the returned call it may be idle for `idleMs`. */
  watch: (onClosed: () => void, idleMs: number) => () => void
  /**
   * Reads more for an answer that has begun: an expensive read of its own, after a look whether the caller still reaches
   * all that it did. Rejects where a request would be 401, 403, 422, 429 or 503.
   */
  readOn: <Result>(read: () => Promise<Result>) => Promise<Result>
}

/** A request for `prepare`, where `db` takes a connection for each statement, and for the `find` of a row. */
export interface UnpreparedRequest<Params, Query, Body> extends RequestFacts<Params, Query, Body> {
  db: Database
}

/** A validated request inside its transaction, for `handle`. */
export interface RouteRequest<Params, Query, Body, Target, Prepared = undefined>
  extends RequestFacts<Params, Query, Body> {
  target: Target
  prepared: Prepared
  /** The transaction of the change; for a read, the pool. */
  db: Database
  /** The databases that a list is merged from, where they are several, and this request as it is made in one of them. */
  merged?:
    | (MergedReads & { requestIn(source: MergeSource): RouteRequest<Params, Query, Body, Target, Prepared> })
    | undefined
  /** `scope` over all databases: in the part of a merged list, `scope` has the accounts of one. */
  reach: PermissionScope
  /** Of a read with `cell: { by: 'each' }`. */
  readEach: ReadEach
}

/** The declaration of a route (docs/contract/api.md#route-declaration), from which all else of it is derived. */
export interface RouteDeclaration {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With parameters in braces: `/api/v3/contract/contract/{id}`. */
  path: string
  /** The noun: `webhook`, `webhook-event`. */
  resource: string
  /** The verb: `create`, `find-all`, `rotate-secret`. */
  action: string
  accountScope: AccountScope
  /** Member of a request that tells its database, where its rows live in cells. Default: home. */
  cell?: CellKey
  /** The permission of the route, where two routes share one. Default `resource:action`. */
  permission?: `${string}:${string}`
  /**
   * Permissions beside that of the route for some of its members, each with what it allows. They have an effect only where
   * they hold for all accounts; the operations check them (`checkHeldEverywhere`).
   */
  morePermissions?: Readonly<Record<`${string}:${string}`, string>>
  /** `permission` (the default) needs `resource:action`; `caller` any valid token; `public` nothing. */
  access?: 'permission' | 'caller' | 'public'
  /**
   * With `access: 'public'`: authenticates the bearer token of a request that has one (`RequestFacts.signedIn`). An invalid
   * token is 401.
   */
  readsCaller?: boolean
  /**
   * With `access: 'caller'`: a session reaches the user's own rows without a permission; the route's permission opens the
   * rows of all users, and an API key needs it also for its owner's rows. The permission then exists and can be granted.
   */
  opensAll?: boolean
  /**
   * Whether a permission limited to the caller's own accounts (docs/contract/identity.md#system-roles, `member`) opens
   * this route. Its operations then check the owner of each row.
   */
  ownAccounts?: boolean
  /** Proof that a session must have given recently (docs/contract/second-factor.md#step-up). Default: nothing. */
  fresh?: Freshness
  /**
   * `pipeline` (the default): the pipeline records the event of each changed resource. `operation`: the operation records
   * it (the synthetic `webhook.test`). `none`: not in the catalogue (the development sink, whose events would loop).
   * `shared`: as `pipeline`, with the event type of an API route that runs the same operation and has the same names.
   */
  event?: 'pipeline' | 'operation' | 'none' | 'shared'
  /** Its event type is deprecated: from when on, ISO 8601, and what to subscribe to instead. */
  eventDeprecation?: { at: string; remedy: string }
  /**
   * The action of its events, where another route of the resource changes the same: the own change of a user is a
   * `user.update`. Such a route has no event type of its own; its audit entries have its own action.
   */
  eventAction?: string
  /**
   * Whether a browser shows the answer: its problems are pages too (docs/contract/pages.md#frame). `asked`: only for a
   * browser that opens the path, by `Accept: text/html`.
   */
  page?: boolean | 'asked'
  /** Whether a request writes. Default: every method but GET. */
  writes?: boolean
  /** The status of a success. Default 200. */
  status?: 200 | 201 | 202
  /** A second kind of success, distinguished by its status: a dry run. */
  also?: { status: 200; description: string; data: TSchema }
  /** The statuses of its redirects, and where they lead. For the OpenAPI document. */
  redirect?: { statuses: readonly (302 | 303)[]; description: string }
  /** The media types of a streamed success, each with its shape; `data` is then unused. */
  media?: Readonly<Record<string, TSchema>>
  /** Whether the success body is bare, not in the `{ data, message }` envelope (docs/contract/api.md#success). */
  bare?: boolean
  /** Whether a success carries an `ETag`, and a request that names it is answered 304 (RFC 9110, section 13.1.2). */
  hasEntityTag?: true
  /**
   * Of the read and of the change of one row: the members of `data` that the change can set, in the same order in both.
   * The `ETag` of the row covers them, and the change takes `If-Match` (docs/contract/api.md#lost-updates); its outcome
   * then names the row `before`.
   */
  rowTag?: readonly string[]
  /** The largest body in bytes. Default 64 KiB. */
  bodyLimitBytes?: number
  /** Whether the route also takes `application/x-www-form-urlencoded` (docs/contract/realtime.md#channel-authorization). */
  takesForm?: boolean
  /** Whether the route also takes `multipart/form-data`, of which nothing is read (RFC 8058 section 3.1). */
  takesMultipart?: boolean
  /**
   * The strict limit: sign-in, exchange, refresh, handshake. Their answers are credentials: no `Idempotency-Key`.
   * `with-operation`: counted in the round trip of the operation's first statement; over the limit the operation is rolled
   * back, so it must do nothing outside its transaction (docs/contract/api.md#strict-limits).
   */
  strictRateLimit?: boolean | 'with-operation'
  /**
   * Whether a request is admitted to the password hashing queue (`Pipeline.admit`), once its body has arrived and
   * before the strict limit: requests refused in a flood cost no statement and count against the generous limit only.
   */
  needsAdmission?: true
  summary: string
  description?: string
  params?: TSchema
  query?: TSchema
  body?: TSchema
  /** The shape of `data`; of one row for a list. */
  data: TSchema
  /** Makes this a list route: its fields, for filters and sort. */
  list?: ListFields
  /** Whether a request is an expensive read (docs/contract/api.md#expensive-reads). Lists decide by filters. */
  isExpensive?: boolean
  /**
   * Whether a replica may make the read of a list, or of an expensive read (docs/contract/api.md#replica). The caller, its
   * permission and the row of the path are looked up on the primary before.
   */
  readsReplica?: true
  /** Problems of its operations besides those that follow from the declaration. For the OpenAPI document. */
  problems?: readonly ProblemCode[]
  /** The member of `data` that is shown once; null in an idempotent replay (docs/contract/api.md#idempotency). */
  shownOnce?: string
}

export type StaticOf<Schema> = Schema extends TSchema ? Static<Schema> : undefined

type RequestSchemas = Partial<Record<'params' | 'query' | 'body', unknown>>

/** The request of a declaration outside its transaction. */
export type UnpreparedOf<Declaration extends RequestSchemas> = UnpreparedRequest<
  StaticOf<Declaration['params']>,
  StaticOf<Declaration['query']>,
  StaticOf<Declaration['body']>
>

/** The request of a declaration inside its transaction. */
export type RequestOf<Declaration extends RequestSchemas, Target, Prepared> = RouteRequest<
  StaticOf<Declaration['params']>,
  StaticOf<Declaration['query']>,
  StaticOf<Declaration['body']>,
  Target,
  Prepared
>

/** Member `data` of a success of a declaration. */
export type DataOf<Declaration extends RouteDeclaration> = Declaration extends { list: ListFields }
  ? Static<Declaration['data']>[]
  : Static<Declaration['data']> | AlsoOf<Declaration>

type AlsoOf<Declaration extends RouteDeclaration> = Declaration extends { also: { data: infer Data extends TSchema } }
  ? Static<Data>
  : never

/** The step that needs the row of the path (`RowLookup`). */
export type RowNeed = 'handle' | 'scope' | 'validation'

/** The look-up of the row in the path of a route. */
export interface RowLookup<Deps, Request, Found, Need extends RowNeed> {
  /** Finds the row. Throws not-found, also for a row outside of the accounts of `scope`. Reads params and caller only. */
  find: (deps: Deps, request: Request) => Promise<Found>
  /**
   * `handle` gets the row as `target`, found inside its transaction. `scope`: `handle` finds the row in the statement
   * that changes it, ignoring accounts; `find` runs before every other step for a caller limited to some accounts, and
   * again inside the transaction of a change. `validation`: `handle` does all of it. With each, `find` runs after a
   * failed validation, because 404 comes before 422 (docs/contract/api.md#check-order).
   */
  neededBy: Need
}

/** The row that `handle` gets. */
export type TargetOf<Found, Need extends RowNeed> = Need extends 'handle' ? Found : undefined

/** The steps of a route, in the order in which they run. */
export interface RouteBehaviour<Deps, Unprepared, Handling, Found, Need extends RowNeed, Prepared, Data> {
  /**
   * Slow work (a name service, a password hash, another server): runs after validation, outside the transaction and
   * without a database connection. Throws like `handle`.
   */
  prepare?: (deps: Deps, request: Unprepared) => Promise<Prepared>
  row?: RowLookup<Deps, Unprepared, Found, Need>
  /** Makes one call of an operation, inside the transaction. */
  handle: (deps: Deps, request: Handling) => Promise<Outcome<Data>>
}

/** A behaviour, or where `handle` is its only step that function. */
export type BehaviourOrHandle<Behaviour extends { handle: unknown }> = Behaviour | Behaviour['handle']
