import type { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { readMonotonicMs } from '../../base/clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { Listing } from '../listing/listing.ts'
import type { MergedReads, MergeSource } from '../listing/merge.ts'
import { Problem } from '../problem/problem.ts'
import { findOwnRequestId } from '../request/request-id.ts'
import { type Caller, includesScope, type PermissionScope } from '../shape/caller.ts'
import type { ReadEach } from './cell-key.ts'
import type { KnownPaths } from './known-path.ts'
import { permissionOf, type RouteDeclaration, type RouteRequest } from './route.ts'
import type { RequestWait } from './route-declaration.ts'

const NO_BODY = Buffer.alloc(0)

/** Age of the check of a caller at which it is made again, in milliseconds: a body may take half a minute. */
const CHECK_LIFE_MS = 500

interface ContextFacts {
  route: RouteDeclaration
  now: Date
  db: Database
  /** Checks the caller again. Throws 401 and 403. */
  recheck: () => Promise<{ caller: Caller; scope: PermissionScope }>
  /** Runs an expensive read of a caller who reaches `scope`. */
  readExpensive: <Result>(scope: PermissionScope, read: () => Promise<Result>) => Promise<Result>
}

/** One request in the pipeline, which sets `listing`, `prepared`, `db` and `target` on its way. */
export class RequestContext implements RouteRequest<unknown, unknown, unknown, unknown, unknown> {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly permission: string
  readonly scope: PermissionScope
  readonly reach: PermissionScope
  readonly now: Date
  readonly requestId: string
  readonly ownRequestId: string
  readonly trace: string | null
  readonly address: string
  readonly headers: FastifyRequest['headers']
  readonly rawBody: Buffer
  readonly waiting: RequestWait
  db: Database
  prepared: unknown = undefined
  target: unknown = undefined
  /** Replaced where there are cells. */
  readEach: ReadEach = async (read) => [await read({ cell: null, db: this.db, scope: this.scope })]
  /** The cells that `readEach` left out. */
  readonly missingCells = new Set<string>()
  #caller: Caller | undefined
  readonly #source: readonly [FastifyRequest, ContextFacts]
  #listing: Listing | undefined
  #merged: MergedReads | undefined

  constructor(request: FastifyRequest, facts: ContextFacts, body = request.body) {
    this.params = request.params
    this.query = request.query
    this.body = body
    this.permission = permissionOf(facts.route)
    this.scope = request.scope ?? []
    this.reach = this.scope
    this.now = facts.now
    this.requestId = request.id
    this.ownRequestId = findOwnRequestId(request.raw, request.id)
    this.trace = request.trace?.stored ?? null
    this.address = request.ip
    this.headers = request.headers
    this.rawBody = request.rawBody ?? NO_BODY
    const { readExpensive } = facts
    const recheck = async () => (await facts.recheck()).scope
    this.waiting = {
      recheck,
      watch: (onClosed, idleMs) => watchConnection(request, onClosed, idleMs),
      readOn: async (read) => {
        this.#checkReach(await recheck())
        return readExpensive(this.scope, read)
      },
    }
    this.db = facts.db
    this.#caller = request.caller
    this.#source = [request, facts]
  }

  /** The request with another body, that is a part of its own. */
  withBody(body: unknown): RequestContext {
    return new RequestContext(...this.#source, body)
  }

  /**
   * Checks a caller again that was checked a while ago, since the body or the preparation took long. Throws 401, and 403 also
   * for one that reaches less than at the beginning.
   */
  async recheckLate(): Promise<void> {
    const [request, { recheck }] = this.#source
    const { callerCheckedAtMs: since } = request
    if (since === undefined || readMonotonicMs() - since < CHECK_LIFE_MS) return
    const { caller, scope } = await recheck()
    this.#checkReach(scope)
    request.callerCheckedAtMs = readMonotonicMs()
    request.caller = caller
    this.#caller = caller
  }

  #checkReach(scope: PermissionScope): void {
    if (!includesScope(scope, this.scope)) throw buildScopeLost(this.permission)
  }

  get merged() {
    const reads = this.#merged
    return reads && { ...reads, requestIn: (source: MergeSource) => this.#in(source) }
  }

  merge(reads: MergedReads | undefined): void {
    this.#merged = reads
  }

  #in({ db, scope }: MergeSource): RequestContext {
    const part = this.withBody(this.body)
    part.#listing = this.#listing
    part.#merged = this.#merged
    return Object.assign(part, { db, scope })
  }

  /** Throws on a public route, which has no caller. */
  get caller(): Caller {
    if (!this.#caller) throw new Error('a public route has no caller')
    return this.#caller
  }

  get signedIn(): Caller | undefined {
    return this.#caller
  }

  /** Throws on a route that declares no list. */
  get listing(): Listing {
    if (!this.#listing) throw new Error('the route declares no list')
    return this.#listing
  }

  set listing(listing: Listing) {
    this.#listing = listing
  }
}

/** 403 for the rest of a request or an answer whose caller reaches less than at its beginning. */
function buildScopeLost(permission: string): Problem {
  return new Problem(
    'permission_denied',
    `This needs the permission ${permission} wherever it held when the request began.`,
    {
      missing: { what: 'scope', permission },
    },
  )
}

/** Connections that requests hold open while they wait: how many on each, and its own idle limit. */
const held = new WeakMap<Socket, { count: number; timeout: number }>()

function watchConnection({ raw: { socket } }: FastifyRequest, onClosed: () => void, idleMs: number): () => void {
  const hold = held.get(socket) ?? { count: 0, timeout: socket.timeout ?? 0 }
  held.set(socket, hold)
  hold.count += 1
  if (hold.timeout > 0) socket.setTimeout(Math.max(idleMs, socket.timeout ?? 0))
  socket.once('close', onClosed)
  return () => {
    socket.off('close', onClosed)
    hold.count -= 1
    if (hold.count > 0) return
    held.delete(socket)
    if (hold.timeout > 0) socket.setTimeout(hold.timeout)
  }
}

declare module 'fastify' {
  interface FastifyInstance {
    findShadowed: KnownPaths['findShadowed']
  }
  interface FastifyRequest {
    caller?: Caller
    /** The time of its last check, in monotonic milliseconds; undefined for a request without a caller. */
    callerCheckedAtMs?: number
    scope?: PermissionScope
    rawBody?: Buffer
  }
}
