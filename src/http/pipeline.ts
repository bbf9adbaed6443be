import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { parseListing } from '../listing/listing.ts'
import { type Database, inTransaction, isLockTimeout } from '../postgres/database.ts'
import { type Answer, buildAnswer, buildRepeatPayload, sendAnswer } from './answer.ts'
import { findPermissionScope } from './caller.ts'
import {
  buildInProgress,
  buildRepeatedAnswer,
  deleteExpiredAnswer,
  findAnswer,
  type IdempotencyKey,
  isKeyTaken,
  type KeptAnswer,
  readIdempotencyKey,
} from './idempotency.ts'
import type { Pipeline } from './pipeline-deps.ts'
import { Problem } from './problem.ts'
import { buildRequestFacts } from './request-facts.ts'
import {
  isChange,
  type Outcome,
  permissionOf,
  type Route,
  type RouteDeclaration,
  type RouteRequest,
  type UnpreparedRequest,
} from './route.ts'
import { buildFastifySchema } from './schema.ts'
import { checkNoBody, checkValidation } from './validation.ts'

/** Fastify writes `:id` where the declarations write `{id}`. */
function toFastifyPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

/** A feature's route with the dependencies of its operations. */
type Mounted<Deps> = { pipeline: Pipeline; route: Route<Deps>; deps: Deps }

/** Mounts the routes of one feature. `serveRequest` below is everything that a request passes, in order. */
export function mountRoutes<Deps>(
  server: FastifyInstance,
  pipeline: Pipeline,
  routes: readonly Route<Deps>[],
  deps: Deps,
): void {
  for (const route of routes) {
    const mounted = { pipeline, route, deps }
    server.route({
      method: route.method,
      url: toFastifyPath(route.path),
      schema: buildFastifySchema(route),
      attachValidation: true,
      config: { route },
      // 401 and 403 come before the body is read (docs/contract/api.md#check-order).
      onRequest: (request, reply) => checkCaller(pipeline, route, request, reply),
      handler: (request, reply) => serveRequest(mounted, request, reply),
    })
  }
}

async function checkCaller(pipeline: Pipeline, route: Route<never>, request: FastifyRequest, reply: FastifyReply) {
  await pipeline.limitAddress(route, request, reply)
  checkMediaType(route, request)
  if (route.access === 'public') return
  const caller = await pipeline.authenticate(request.headers.authorization)
  if (!caller) {
    throw new Problem('unauthenticated', 'Send a valid, unexpired token: Authorization: Bearer <token>.', {
      headers: { 'www-authenticate': 'Bearer' },
    })
  }
  request.caller = caller
  pipeline.limitCaller(caller, reply)
  const permission = permissionOf(route)
  const scope = findPermissionScope(caller, permission)
  request.scope = scope ?? []
  if (route.access === 'caller' || scope === 'all' || (scope && route.ownAccounts)) return
  const refusal = new Problem('permission_denied', `This needs the permission ${permission}, which you do not hold.`)
  await pipeline.recordRefusal({ route, request: buildRequestFacts(pipeline.clock, request), problem: refusal })
  throw refusal
}

/** A form is read only where a route asks for it: else a page of any site could post one (415). */
function checkMediaType(route: Route<never>, request: FastifyRequest): void {
  const mediaType = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  if (mediaType === 'application/x-www-form-urlencoded' && !route.takesForm)
    throw new Problem('unsupported_media_type', 'Send the body as Content-Type: application/json.')
}

/** One request, from the checked caller to the answer. */
async function serveRequest<Deps>(mounted: Mounted<Deps>, request: FastifyRequest, reply: FastifyReply) {
  const { pipeline, route } = mounted
  const facts = buildRequestFacts(pipeline.clock, request)
  const unprepared = Object.assign(facts, { db: pipeline.db })
  try {
    await checkRequest(mounted, request, unprepared)
    const answer = isChange(route)
      ? await performChange(mounted, { request, reply, unprepared })
      : await performRead(mounted, { reply, unprepared })
    return sendAnswer(reply, answer)
  } catch (error) {
    if (error instanceof Problem && error.code === 'permission_denied')
      await pipeline.recordRefusal({ route, request: facts, problem: error })
    throw error
  }
}

/** 404 before 422: a request that breaks a rule is asked first whether its path names anything. */
async function checkRequest<Deps>(
  { route, deps }: Mounted<Deps>,
  request: FastifyRequest,
  unprepared: UnpreparedRequest<unknown, unknown, unknown>,
): Promise<void> {
  checkValidation(request, 'params')
  try {
    checkValidation(request, 'rest')
    if (!route.body) checkNoBody(request)
    if (route.list) unprepared.listing = parseListing(request.query as Record<string, unknown>, route.list)
  } catch (invalid) {
    const locate = route.locate ?? route.load
    await locate?.(deps, Object.assign(unprepared, { target: undefined, prepared: undefined }))
    throw invalid
  }
}

/** What a request brings to the steps below. */
interface Received {
  request: FastifyRequest
  reply: FastifyReply
  unprepared: UnpreparedRequest<unknown, unknown, unknown>
}

async function performRead<Deps>(mounted: Mounted<Deps>, received: Omit<Received, 'request'>): Promise<Answer> {
  const { pipeline, route, deps } = mounted
  const prepared = await route.prepare?.(deps, received.unprepared)
  const outcome = await handle(mounted, { ...received, prepared, db: pipeline.db })
  if (outcome.kind === 'refusal') throw outcome.problem
  await pipeline.recordRead({ route, outcome, request: received.unprepared })
  return buildAnswer(route, outcome, received.reply)
}

/**
 * A change: one transaction holds the change, its events, its audit entry and the answer of its idempotency key. The key
 * is taken by the last statement, so a first request pays no round trip for it. Whatever stops a later request with the
 * same key, the first answer is looked up before the refusal is sent.
 */
async function performChange<Deps>(mounted: Mounted<Deps>, received: Received): Promise<Answer> {
  const { pipeline, route } = mounted
  const key = readIdempotencyKey(received.request, route)
  try {
    return await prepareAndCommit(mounted, { ...received, key })
  } catch (error) {
    if (!key || !(error instanceof Problem || isKeyTaken(error))) throw error
    const earlier = await findAnswer(pipeline.db, key, { route, facts: received.unprepared })
    if (earlier) return buildRepeatedAnswer(earlier)
    if (!isKeyTaken(error)) throw error
    // The key was used over 24 hours ago and is not removed yet: it is free.
    await deleteExpiredAnswer(pipeline.db, key, received.unprepared.now)
    return prepareAndCommit(mounted, { ...received, key })
  }
}

type KeyedChange = Received & { key: IdempotencyKey | undefined }

async function prepareAndCommit<Deps>(mounted: Mounted<Deps>, change: KeyedChange): Promise<Answer> {
  const { pipeline, route, deps } = mounted
  const prepared = await route.prepare?.(deps, change.unprepared)
  const { result, notes } = await inTransaction(pipeline.db, (tx) => commitChange(mounted, change, { tx, prepared }))
  pipeline.afterCommit(notes)
  if (result instanceof Problem) throw result
  return result
}

/** Everything inside the transaction. Its last statement records the change and carries the commit. */
async function commitChange<Deps>(
  mounted: Mounted<Deps>,
  change: KeyedChange,
  step: { tx: Database; prepared: unknown },
): Promise<{ result: Answer | Problem; notes: string }> {
  const { pipeline, route } = mounted
  const { key, reply, unprepared } = change
  const outcome = await handle(mounted, { unprepared, prepared: step.prepared, db: step.tx })
  // An answer that cannot be serialized fails here, while nothing is kept yet.
  const result = outcome.kind === 'refusal' ? outcome.problem : buildAnswer(route, outcome, reply)
  const kept =
    key && !(result instanceof Problem) ? { key, answer: buildKept(route, outcome, { result, reply }) } : undefined
  const notes = await pipeline.recordChange(step.tx, { route, outcome, request: unprepared, kept }).catch((error) => {
    throw key && isLockTimeout(error) ? buildInProgress() : error
  })
  return { result, notes }
}

function buildKept(
  route: RouteDeclaration,
  outcome: Outcome<unknown>,
  answered: { result: Answer; reply: FastifyReply },
): KeptAnswer {
  const { status, headers } = answered.result
  const account = outcome.kind === 'refusal' ? null : (outcome.changed?.[0]?.account ?? null)
  return { status, payload: buildRepeatPayload(route, outcome, answered.reply), location: headers.location, account }
}

/** Loads what the path names, and calls the operation. */
async function handle<Deps>(
  { route, deps }: Mounted<Deps>,
  step: { unprepared: UnpreparedRequest<unknown, unknown, unknown>; prepared: unknown; db: Database },
): Promise<Outcome<unknown>> {
  // Inherited, not copied: `caller` and `listing` are getters that throw where there is none.
  const request: RouteRequest<unknown, unknown, unknown, undefined, unknown> = Object.assign(
    Object.create(step.unprepared),
    { db: step.db, prepared: step.prepared, target: undefined },
  )
  if (!route.load) return route.handle(deps, request)
  return route.handle(deps, Object.assign(request, { target: await route.load(deps, request) }))
}
