import type { Readable } from 'node:stream'
import type { Static, TSchema } from 'typebox'
import type { AccountId } from '../id.ts'
import type { ListFields, Listing } from '../listing/listing.ts'
import type { Database } from '../postgres/database.ts'
import type { Caller } from './caller.ts'
import type { ProblemCode } from './problem.ts'

/** Whether the events of a route have an owning account, resolved when they are recorded (contract, Event). */
export type AccountScope = 'account' | 'none'

/** One resource that an operation changed. The shell writes one event for each (D70a). */
export interface Changed {
  /** The `document_id` of the resource; null when the operation has no single one (a list). */
  id: string | null
  /** Its owner. Ignored when the route's scope is `none`; null for a purge. */
  account: AccountId | null
  /** The path that reads it, where that is not the `find-one` route of the route's own resource. */
  url?: string | null
}

/** What an operation hands back to the shell. */
export interface Outcome<Data> {
  data: Data
  message: string
  /** The resources that changed. A route that changes something and leaves this out emits nothing. */
  changed?: Changed[]
  /** Set by list routes. */
  pagination?: { page_size: number; next_cursor: string | null; total?: number }
  /** The path of what was created; becomes the `Location` header of a 201. */
  location?: string
  headers?: Record<string, string>
  /** The status of this success, where it is the one of the declaration's `also`. */
  status?: number
  /** Sent as it comes in place of the envelope; `data` and `message` go nowhere. For a declaration with `media`, a GET. */
  stream?: { contentType: string; body: Readable }
  /** More for the audit entry. Never a secret. */
  audit?: Record<string, unknown>
}

/** A request as an operation sees it: read, checked, and inside its transaction. */
export interface RouteRequest<Params, Query, Body, Target> {
  params: Params
  query: Query
  body: Body
  /** What `load` found. */
  target: Target
  /** Who asks. Routes with `access: 'public'` have none; `caller` then throws. */
  caller: Caller
  /** The transaction of the change; for a GET, or with `transaction: false`, the pool. */
  db: Database
  /**
   * Records the route's event for what changed, in `tx`. For routes with `transaction: false`, whose operations keep
   * their own transactions; all others hand back `changed` instead.
   */
  emit: (tx: Database, changed: Changed[]) => Promise<void>
  /** The instant of the request. The same for everything the request writes. */
  now: Date
  /** Filters, sort and page of a list route (D5). */
  listing: Listing
  requestId: string
  /** What the events of this request are stored with, so that their deliveries belong to its trace; null when it has none. */
  trace: string | null
  address: string
  headers: Record<string, string | string[] | undefined>
  /** The body as it came, for signatures. */
  rawBody: Buffer
}

/** What a route says about itself, once (D9). Permission, event type, OpenAPI operation and audit entry all come from it. */
export interface RouteDeclaration {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With parameters in braces: `/api/v3/contract/contract/{id}`. */
  path: string
  /** The noun: `webhook`, `webhook-event`. */
  resource: string
  /** The verb: `create`, `find-all`, `rotate-secret`. */
  action: string
  accountScope: AccountScope
  /** The permission that opens the route, where two routes share one. `resource:action` unless said. */
  permission?: `${string}:${string}`
  /** `permission` (the default) needs `resource:action`; `caller` any valid token; `public` nothing. */
  access?: 'permission' | 'caller' | 'public'
  /**
   * Whether a permission that holds for the caller's own accounts only (D11, `member`) opens this route. Then its
   * operations look at the owner of what they touch. Without it such a permission opens nothing.
   */
  ownAccounts?: boolean
  /**
   * `shell` (the default): the shell records the event of each changed resource. `operation`: the operation records it
   * (the synthetic `webhook.test`). `none`: not in the catalogue at all (the development sink, which would feed itself).
   */
  event?: 'shell' | 'operation' | 'none'
  /** `false` when the operation keeps what it wrote although it refuses (a failed sign-in). It calls `emit` itself. */
  transaction?: boolean
  /** The status of a success. 200 unless said. */
  status?: 200 | 201 | 202
  /** A second kind of success, told apart by its status: what would happen, where the first says what does. */
  also?: { status: 200; description: string; data: TSchema }
  /** The media types of a success that is streamed, each with its shape; `data` then describes nothing. */
  media?: Readonly<Record<string, TSchema>>
  /** Whether the success body is bare, not in the `{ data, message }` envelope (D3). */
  bare?: boolean
  /** Whether the body may come as `application/x-www-form-urlencoded` too (D53). */
  takesForm?: boolean
  /** The strict limit of D8: sign-in, exchange, refresh, handshake. */
  strictRateLimit?: boolean
  summary: string
  description?: string
  params?: TSchema
  query?: TSchema
  body?: TSchema
  /** The shape of `data`; of one row for a list. */
  data: TSchema
  /** Makes this a list route: its fields, for filters and sort. */
  list?: ListFields
  /** Problems that its operations throw besides those that follow from the rest of the declaration. For the document. */
  problems?: readonly ProblemCode[]
  /** The member of `data` that is shown once; an idempotent replay says null instead (D7). */
  shownOnce?: string
}

type StaticOf<Schema> = Schema extends TSchema ? Static<Schema> : undefined

type RequestOf<Declaration extends RouteDeclaration, Target> = RouteRequest<
  StaticOf<Declaration['params']>,
  StaticOf<Declaration['query']>,
  StaticOf<Declaration['body']>,
  Target
>

type DataOf<Declaration extends RouteDeclaration> = Declaration extends { list: ListFields }
  ? Static<Declaration['data']>[]
  : Static<Declaration['data']> | AlsoOf<Declaration>

type AlsoOf<Declaration extends RouteDeclaration> = Declaration extends { also: { data: infer Data extends TSchema } }
  ? Static<Data>
  : never

/** A declaration with what it does. `Deps` is what its operations use, given by the app. */
export interface Route<Deps> extends RouteDeclaration {
  /** Finds what the path names, before the body is judged (404 comes before 422, D4). */
  load: (deps: Deps, request: RouteRequest<unknown, unknown, unknown, undefined>) => Promise<unknown>
  handle: (deps: Deps, request: RouteRequest<unknown, unknown, unknown, unknown>) => Promise<Outcome<unknown>>
}

/** The routes of one feature. */
export type Routes<Deps> = readonly Route<Deps>[]

/**
 * Declares one v3 route. `load` finds what the path names and throws not-found; `handle` makes one call of an operation.
 * The types of params, query, body and data follow from the schemas.
 */
export function defineRoute<Deps, const Declaration extends RouteDeclaration, Target = undefined>(
  declaration: Declaration,
  behaviour: {
    load?: (deps: Deps, request: RequestOf<Declaration, undefined>) => Promise<Target>
    handle: (deps: Deps, request: RequestOf<Declaration, Target>) => Promise<Outcome<DataOf<Declaration>>>
  },
): Route<Deps> {
  const route = { ...declaration, ...behaviour, load: behaviour.load ?? (async () => undefined) }
  return route as unknown as Route<Deps>
}

/** `webhook:create`: what the route says itself, or its resource and action. */
export function permissionOf(route: Pick<RouteDeclaration, 'resource' | 'action' | 'permission'>): string {
  return route.permission ?? `${route.resource}:${route.action}`
}

/** `webhook.create` */
export function eventNameOf(route: Pick<RouteDeclaration, 'resource' | 'action'>): string {
  return `${route.resource}.${route.action}`
}

/** `webhookRotateSecret` */
export function operationIdOf(route: Pick<RouteDeclaration, 'resource' | 'action'>): string {
  return `${route.resource}-${route.action}`.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}
