import { finished } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { readMonotonicMs } from '../../base/clock.ts'
import { parseListing } from '../listing/listing.ts'
import { Problem } from '../problem/problem.ts'
import { type Answer, sendAnswer } from '../route/answer.ts'
import { RequestContext } from '../route/request-context.ts'
import { isChange, permissionOf, type Route, type RouteDeclaration } from '../route/route.ts'
import { checkTakesCondition } from '../route/row-tag.ts'
import { findFastifySchema } from '../route/schema.ts'
import { checkMediaType, checkNoBody, checkValidation } from '../route/validation.ts'
import { type Caller, findPermissionScope, type PermissionScope } from '../shape/caller.ts'
import { findCallerRefusal } from './caller-refusal.ts'
import { explainLackedAccount } from './lacked-account.ts'
import { describeMissingCaller } from './missing-caller.ts'
import { performRequest, readExpensive, type Served } from './perform.ts'
import type { Pipeline } from './pipeline-deps.ts'
import { servePlaced } from './serve-placed.ts'

/** Fastify writes `:id` where the declarations write `{id}`. */
function toFastifyPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

/** The routes of one feature, with the dependencies of its operations. */
export interface MountedFeature<Deps> {
  routes: readonly Route<Deps>[]
  deps: Deps
  /** The dependencies with the parts of another database (`Place.parts`). Default: the same. */
  depsIn?: (parts: object) => Deps
  /** Makes the answer of a checked request. Default: `performRequest`. */
  perform?: (served: Served<Deps>) => Promise<Answer>
}

/** Mounts the routes of one feature. `checkCaller`, then `serveRequest`, are the steps of every request. */
export function mountRoutes<Deps>(
  server: FastifyInstance,
  pipeline: Pipeline,
  { routes, deps, depsIn = () => deps, perform = performRequest }: MountedFeature<Deps>,
): void {
  for (const route of routes) {
    const mounted = { pipeline, route, deps, depsIn, perform }
    server.route({
      method: route.method,
      url: toFastifyPath(route.path),
      schema: findFastifySchema(route),
      attachValidation: true,
      ...(route.bodyLimitBytes && { bodyLimit: route.bodyLimitBytes }),
      // HEAD is safe (RFC 9110 section 9.2.1): link scanners send it, and it must not spend what a GET spends.
      ...(route.method === 'GET' && isChange(route) && { exposeHeadRoute: false }),
      config: { route },
      // 401 and 403 come before the body is read (docs/contract/api.md#check-order).
      onRequest: (request, reply) => checkCaller(pipeline, route, request, reply),
      handler: (request, reply) => serveRequest(mounted, request, reply),
    })
  }
}

async function checkCaller(pipeline: Pipeline, route: Route<never>, request: FastifyRequest, reply: FastifyReply) {
  request.routePath = route.path
  // Admitted once the body has arrived: a slow body must not keep a place.
  if (route.needsAdmission) pipeline.limitVisit(request, reply)
  else await pipeline.limitAddress(route, request, reply)
  checkMediaType(route, request)
  const { authorization } = request.headers
  const isRead = route.access !== 'public' || (route.readsCaller && authorization !== undefined)
  if (!isRead) return
  const caller = await authenticate(pipeline, request)
  request.caller = caller
  request.callerCheckedAtMs = readMonotonicMs()
  pipeline.limitCaller(caller, reply)
  const scope = findPermissionScope(caller, permissionOf(route))
  request.scope = scope ?? []
  const refusal = findCallerRefusal(route, { caller, scope, now: new Date(pipeline.clock.now()) })
  if (!refusal) return
  await pipeline.recordRefusal({ route, request: buildContext(pipeline, route, request), problem: refusal })
  throw refusal
}

async function authenticate(pipeline: Pipeline, { headers }: FastifyRequest): Promise<Caller> {
  const { authorization } = headers
  const caller =
    authorization === undefined ? await pipeline.authenticatePage(headers) : await pipeline.authenticate(authorization)
  if (caller) return caller
  throw new Problem('unauthenticated', describeMissingCaller(authorization), {
    headers: { 'www-authenticate': 'Bearer' },
  })
}

/** Checks the caller of a request that waits, like `checkCaller`, against no limit. */
async function recheckCaller(
  pipeline: Pipeline,
  route: RouteDeclaration,
  request: FastifyRequest,
): Promise<{ caller: Caller; scope: PermissionScope }> {
  const caller = await authenticate(pipeline, request)
  const scope = findPermissionScope(caller, permissionOf(route))
  const refusal = findCallerRefusal(route, { caller, scope, now: new Date(pipeline.clock.now()) })
  if (refusal) throw refusal
  return { caller, scope: scope ?? [] }
}

/** The statuses of a try that was wrong, or too early. */
const REFUSED_STATUSES: ReadonlySet<number> = new Set([401, 429])

/** Admits the request until it is answered or its connection closes, and then counts it. */
async function admit<Deps>({ pipeline, route, request, reply }: Served<Deps>): Promise<void> {
  if (!route.needsAdmission) return
  const knownBrowser = pipeline.findKnownBrowser(request.headers.cookie, request.body)
  const leave = pipeline.admit({ address: request.ip, knownBrowser })
  finished(reply.raw, () => leave(REFUSED_STATUSES.has(reply.statusCode)))
  await pipeline.limitAddress(route, request, reply)
}

function buildContext(pipeline: Pipeline, route: RouteDeclaration, request: FastifyRequest): RequestContext {
  return new RequestContext(request, {
    ...{ route, now: new Date(pipeline.clock.now()), db: pipeline.db },
    recheck: () => recheckCaller(pipeline, route, request),
    readExpensive: (scope, read) => {
      if (!request.caller) throw new Error('a public route has no caller')
      return readExpensive(pipeline, { caller: request.caller, scope }, read)
    },
  })
}

type Mounted<Deps> = Omit<Served<Deps>, 'request' | 'reply' | 'context'> &
  Required<Pick<MountedFeature<Deps>, 'perform'>>

async function serveRequest<Deps>(mounted: Mounted<Deps>, request: FastifyRequest, reply: FastifyReply) {
  const { pipeline, route } = mounted
  const context = buildContext(pipeline, route, request)
  const served = { ...mounted, request, reply, context }
  try {
    await admit(served)
    await context.recheckLate()
    return sendAnswer(reply, await servePlaced(served, { check: checkRequest, perform: mounted.perform }))
  } catch (failure) {
    const given = [request.params, request.query, request.body]
    const error = explainLackedAccount(route, request.caller, { error: failure, given }) ?? failure
    if (error instanceof Problem && error.status === 403)
      await pipeline.recordRefusal({ route, request: context, problem: error })
    throw error
  }
}

/** Validates a request, and finds its database. A missing row still wins: 404 comes before 422. */
async function checkRequest<Deps>(given: Served<Deps>, place: (served: Served<Deps>) => Promise<Served<Deps>>) {
  const { route, request, context } = given
  checkTakesCondition(route, request.headers)
  checkValidation(request, 'params')
  const byRow = route.cell?.by === 'row'
  const served = byRow ? await place(given) : given
  try {
    checkValidation(request, 'rest')
    if (!route.body) checkNoBody(request)
    if (route.list) context.listing = parseListing(request.query as Record<string, unknown>, route.list, context.scope)
  } catch (invalid) {
    await route.row?.find(served.deps, context)
    throw invalid
  }
  return byRow ? served : place(served)
}
