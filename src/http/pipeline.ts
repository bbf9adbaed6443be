import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Listing, parseListing } from '../listing/listing.ts'
import { inTransaction } from '../postgres/database.ts'
import type { Caller } from './caller.ts'
import { findReach } from './caller.ts'
import { findIdempotentAnswer, readIdempotencyKey, storeIdempotentAnswer } from './idempotency.ts'
import type { Shell } from './pipeline-deps.ts'
import { Problem } from './problem.ts'
import type { Outcome, Route, RouteRequest } from './route.ts'
import { permissionOf } from './route.ts'
import { buildFastifySchema } from './schema.ts'
import { checkNoBody, checkValidation } from './validation.ts'

/** Fastify writes `:id` where the declarations write `{id}`. */
function toFastifyPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

/** Mounts the routes of one feature. Everything a request goes through, in order, is `serveRequest` below. */
export function mountRoutes<Deps>(server: FastifyInstance, shell: Shell, routes: readonly Route<Deps>[], deps: Deps) {
  for (const route of routes) {
    server.route({
      method: route.method,
      url: toFastifyPath(route.path),
      schema: buildFastifySchema(route),
      attachValidation: true,
      config: { route },
      // 401 and 403 come before the body is read (D4).
      onRequest: async (request, reply) => {
        await checkCaller(shell, route, request, reply)
        checkMediaType(route, request)
      },
      handler: (request, reply) => serveRequest({ shell, route, deps }, request, reply),
    })
  }
}

async function checkCaller(shell: Shell, route: Route<never>, request: FastifyRequest, reply: FastifyReply) {
  await shell.limitAddress(route, request, reply)
  if (route.access === 'public') return
  const caller = await shell.authenticate(request.headers.authorization)
  if (!caller) {
    throw new Problem('unauthenticated', 'Send a valid, unexpired token: Authorization: Bearer <token>.', {
      headers: { 'www-authenticate': 'Bearer' },
    })
  }
  request.caller = caller
  await shell.limitCaller(caller, reply)
  if (route.access === 'caller') return
  const permission = permissionOf(route)
  const reach = findReach(caller, permission)
  if (reach === 'nowhere' || (reach === 'own accounts' && !route.ownAccounts))
    throw new Problem('permission_denied', `This needs the permission ${permission}, which you do not hold.`)
}

/** A form is read only where a route asks for it: else a page of any site could post one (D4, 415). */
function checkMediaType(route: Route<never>, request: FastifyRequest): void {
  const mediaType = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  if (mediaType === 'application/x-www-form-urlencoded' && !route.takesForm)
    throw new Problem('unsupported_media_type', 'Send the body as Content-Type: application/json.')
}

type Mounted<Deps> = { shell: Shell; route: Route<Deps>; deps: Deps }

/** One request, from the checked caller to the answer: a read on the pool, a change in one transaction with its event. */
async function serveRequest<Deps>(mounted: Mounted<Deps>, request: FastifyRequest, reply: FastifyReply) {
  const { shell, route } = mounted
  const isChange = route.method !== 'GET' && route.transaction !== false
  const answer = isChange
    ? await inTransaction(shell.db, (tx) => performChange(mounted, request, tx))
    : await performOnPool(mounted, request)
  if (route.method !== 'GET') shell.afterCommit()
  return sendAnswer(reply, answer)
}

/** What goes over the wire; also what an idempotency key keeps. */
interface Answer {
  status: number
  body: unknown
  location: string | undefined
  headers: Record<string, string>
  stream?: Outcome<unknown>['stream']
}

/** A read, or a change that keeps its own transactions and emits in them (`transaction: false`). */
async function performOnPool<Deps>(mounted: Mounted<Deps>, request: FastifyRequest): Promise<Answer> {
  const { shell, route, deps } = mounted
  const routeRequest = buildRouteRequest(mounted, request, shell.db)
  const outcome = await handleChecked(route, deps, request, routeRequest)
  if (route.method === 'GET') await shell.recordRead({ route, outcome, request: routeRequest })
  return { ...buildAnswer(route, outcome), stream: outcome.stream }
}

async function performChange<Deps>(
  mounted: Mounted<Deps>,
  request: FastifyRequest,
  tx: RouteRequest<unknown, unknown, unknown, unknown>['db'],
): Promise<Answer> {
  const { shell, route, deps } = mounted
  const routeRequest = buildRouteRequest(mounted, request, tx)
  const key = route.method === 'POST' ? readIdempotencyKey(request, route) : undefined
  if (key) {
    const earlier = await findIdempotentAnswer(tx, key, routeRequest.now)
    if (earlier) return { ...earlier, ...buildReplay(route, earlier.body) }
  }
  const outcome = await handleChecked(route, deps, request, routeRequest)
  await shell.recordChange({ route, outcome, request: routeRequest })
  const answer = buildAnswer(route, outcome)
  if (key) await storeIdempotentAnswer(tx, key, { ...answer, body: hideShownOnce(route, answer.body) })
  return answer
}

/** 404 before 422 before 409 (D4): load, then validate, then operate. */
async function handleChecked<Deps>(
  route: Route<Deps>,
  deps: Deps,
  request: FastifyRequest,
  routeRequest: RouteRequest<unknown, unknown, unknown, undefined>,
): Promise<Outcome<unknown>> {
  checkValidation(request, 'params')
  const target = await route.load(deps, routeRequest)
  checkValidation(request, 'rest')
  if (!route.body) checkNoBody(request)
  if (route.list) routeRequest.listing = parseListing(request.query as Record<string, unknown>, route.list)
  // Assigned, not spread: `caller` and `listing` are getters that throw where there is none.
  return route.handle(deps, Object.assign(routeRequest, { target }))
}

function buildRouteRequest<Deps>(
  { shell, route }: Mounted<Deps>,
  request: FastifyRequest,
  db: RouteRequest<unknown, unknown, unknown, unknown>['db'],
): RouteRequest<unknown, unknown, unknown, undefined> {
  let listing: Listing | undefined
  const now = new Date(shell.clock.now())
  const trace = request.trace?.stored ?? null
  return {
    emit: (tx, changed) => shell.recordEvents({ route, changed, db: tx, now, trace }),
    params: request.params,
    query: request.query,
    body: request.body,
    target: undefined,
    get caller(): Caller {
      if (!request.caller) throw new Error('a public route asked for its caller')
      return request.caller
    },
    db,
    now,
    get listing(): Listing {
      if (!listing) throw new Error('the route declares no list')
      return listing
    },
    set listing(read: Listing) {
      listing = read
    },
    requestId: request.id,
    trace,
    address: request.ip,
    headers: request.headers,
    rawBody: request.rawBody ?? Buffer.alloc(0),
  }
}

function buildAnswer(route: Route<never>, outcome: Outcome<unknown>): Answer {
  const { data, message, pagination, location, headers } = outcome
  const body = route.bare ? data : { data, message, ...(pagination && { pagination }) }
  return { status: outcome.status ?? route.status ?? 200, body, location, headers: headers ?? {} }
}

type Enveloped = { data: Record<string, unknown>; message: string }

function hideShownOnce(route: Route<never>, body: unknown): unknown {
  if (!route.shownOnce) return body
  const { data, ...rest } = body as Enveloped
  return { ...rest, data: { ...data, [route.shownOnce]: null } }
}

function buildReplay(route: Route<never>, body: unknown): { body: unknown; headers: Record<string, string> } {
  const headers = { 'idempotency-replayed': 'true' }
  if (!route.shownOnce) return { body, headers }
  const message = `Already done under this Idempotency-Key. The ${route.shownOnce} was shown in the first answer only; rotate it if it is lost.`
  return { body: { ...(body as Enveloped), message }, headers }
}

function sendAnswer(reply: FastifyReply, answer: Answer) {
  // Answers are one caller's own, some of them secrets: no cache keeps them (RFC 9111) unless the route says otherwise.
  reply.header('cache-control', 'no-store')
  for (const [name, value] of Object.entries(answer.headers)) reply.header(name, value)
  if (answer.location) reply.header('location', answer.location)
  // Fastify reads a stream as fast as the client takes it, and destroys it when the client goes.
  if (answer.stream) return reply.code(answer.status).type(answer.stream.contentType).send(answer.stream.body)
  return reply.code(answer.status).send(answer.body)
}
