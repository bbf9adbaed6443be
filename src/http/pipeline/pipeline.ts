import { finished } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Database, inTransaction, isStatementTimeout, READ_LIMIT_MS } from '../../postgres/statement/database.ts'
import { isExpensive, parseListing } from '../listing/listing.ts'
import { Problem } from '../problem/problem.ts'
import {
  type Answer,
  buildAnswer,
  buildRepeatPayload,
  isShownRefusal,
  type ShownRefusal,
  sendAnswer,
} from '../route/answer.ts'
import { type IdempotencyKey, isKeyAwaited, isKeyTaken, type KeptAnswer } from '../route/idempotency.store.ts'
import {
  buildInProgress,
  buildRepeatedAnswer,
  deleteExpiredAnswer,
  findAnswer,
  readIdempotencyKey,
} from '../route/idempotency.ts'
import { RequestContext } from '../route/request-context.ts'
import {
  isChange,
  type Outcome,
  permissionOf,
  type Route,
  type RouteDeclaration,
  type SharedInsert,
} from '../route/route.ts'
import { findFastifySchema } from '../route/schema.ts'
import { checkMediaType, checkNoBody, checkValidation } from '../route/validation.ts'
import { findPermissionScope, nameReader } from '../shape/caller.ts'
import { findCallerRefusal } from './caller-refusal.ts'
import { describeMissingCaller } from './missing-caller.ts'
import type { Pipeline } from './pipeline-deps.ts'

/** Fastify writes `:id` where the declarations write `{id}`. */
function toFastifyPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

/** A feature's route with the dependencies of its operations. */
type Mounted<Deps> = { pipeline: Pipeline; route: Route<Deps>; deps: Deps }

/** Mounts the routes of one feature. `checkCaller`, then `serveRequest`, are the steps of every request. */
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
  // A place is taken once the body is there: a slow one must not hold it.
  if (route.takesPlace) pipeline.limitVisit(request, reply)
  else await pipeline.limitAddress(route, request, reply)
  checkMediaType(route, request)
  const { authorization } = request.headers
  const isRead = route.access !== 'public' || (route.readsCaller && authorization !== undefined)
  if (!isRead) return
  const caller =
    authorization === undefined
      ? await pipeline.authenticatePage(request.headers)
      : await pipeline.authenticate(authorization)
  if (!caller) {
    throw new Problem('unauthenticated', describeMissingCaller(authorization), {
      headers: { 'www-authenticate': 'Bearer' },
    })
  }
  request.caller = caller
  pipeline.limitCaller(caller, reply)
  const scope = findPermissionScope(caller, permissionOf(route))
  request.scope = scope ?? []
  const refusal = findCallerRefusal(route, { caller, scope, now: new Date(pipeline.clock.now()) })
  if (!refusal) return
  await pipeline.recordRefusal({ route, request: buildContext(pipeline, route, request), problem: refusal })
  throw refusal
}

/** The statuses of a try that was wrong, or too early. */
const REFUSED_STATUSES: ReadonlySet<number> = new Set([401, 429])

/** Takes a place for the request until it is answered or its connection ends, and then counts it. */
async function takePlace<Deps>({ pipeline, route, request, reply }: Served<Deps>): Promise<void> {
  if (!route.takesPlace) return
  const knownBrowser = pipeline.findKnownBrowser(request.headers.cookie, request.body)
  const leave = pipeline.takePlace({ address: request.ip, knownBrowser })
  finished(reply.raw, () => leave(REFUSED_STATUSES.has(reply.statusCode)))
  await pipeline.limitAddress(route, request, reply)
}

function buildContext(pipeline: Pipeline, route: RouteDeclaration, request: FastifyRequest): RequestContext {
  return new RequestContext(request, { route, now: new Date(pipeline.clock.now()), db: pipeline.db })
}

/** A request with its route and reply. */
interface Served<Deps> extends Mounted<Deps> {
  request: FastifyRequest
  reply: FastifyReply
  context: RequestContext
}

/** One request, from the checked caller to the answer. */
async function serveRequest<Deps>(mounted: Mounted<Deps>, request: FastifyRequest, reply: FastifyReply) {
  const { pipeline, route } = mounted
  const context = buildContext(pipeline, route, request)
  const served = { ...mounted, request, reply, context }
  try {
    await takePlace(served)
    await checkRequest(served)
    const answer = isChange(route) ? await performChange(served) : await performRead(served)
    return sendAnswer(reply, answer)
  } catch (error) {
    if (error instanceof Problem && error.status === 403)
      await pipeline.recordRefusal({ route, request: context, problem: error })
    throw error
  }
}

/** Validates a request. When it is invalid, a missing row still wins: 404 comes before 422. */
async function checkRequest<Deps>(served: Served<Deps>): Promise<void> {
  const { route, deps, request, context } = served
  checkValidation(request, 'params')
  try {
    checkValidation(request, 'rest')
    if (!route.body) checkNoBody(request)
    if (route.list) context.listing = parseListing(request.query as Record<string, unknown>, route.list, context.scope)
  } catch (invalid) {
    await checkReach(served)
    await (route.locate ?? route.load)?.(deps, context as never)
    throw invalid
  }
}

async function performRead<Deps>(served: Served<Deps>): Promise<Answer> {
  const { pipeline, route, context, reply } = served
  await prepare(served)
  const outcome = await (route.list || route.isExpensive ? handleBounded(served) : handle(served))
  if (isShownRefusal(outcome)) return answerRefusal(served, outcome)
  if (outcome.kind === 'refusal') throw outcome.problem
  await pipeline.recordRead({ route, outcome, request: context })
  return buildAnswer(route, outcome, reply)
}

/**
 * A change: one transaction holds the change, its events, its audit entry and the answer of its idempotency key. The last
 * statement inserts the key, so a first request pays no round trip for it. When a request with a key is refused, for any
 * reason, the stored answer of the first request wins.
 */
async function performChange<Deps>(served: Served<Deps>): Promise<Answer> {
  const { pipeline, route, context } = served
  const key = readIdempotencyKey(served.request, route)
  try {
    return await prepareAndCommit(served, key)
  } catch (error) {
    if (!key || !(error instanceof Problem || isKeyTaken(error))) throw error
    const earlier = await findAnswer(pipeline.db, key, { route, facts: context })
    if (earlier) return buildRepeatedAnswer(earlier)
    if (!isKeyTaken(error)) throw error
    // The key expired and maintenance has not removed it yet.
    await deleteExpiredAnswer(pipeline.db, key, context.now)
    return prepareAndCommit(served, key)
  }
}

async function prepareAndCommit<Deps>(served: Served<Deps>, key: IdempotencyKey | undefined): Promise<Answer> {
  const { pipeline, route, deps, context } = served
  context.db = pipeline.db
  await prepare(served)
  const insert = key ? undefined : route.insert?.(deps, context)
  if (insert) return commitInsert(served, insert)
  const commit = () => inTransaction(pipeline.db, (tx) => commitChange(served, tx, key))
  const { result, notes } = await (route.isExpensive ? takeTurn(served, commit) : commit())
  pipeline.afterCommit(notes)
  if (result instanceof Problem) throw result
  return result
}

/** An operation that only inserts: its transaction is shared with those of other requests. */
async function commitInsert<Deps>(served: Served<Deps>, insert: SharedInsert<unknown>): Promise<Answer> {
  const { pipeline, route, context, reply } = served
  const { outcome } = insert
  // An answer that cannot be serialized fails here, while nothing is kept yet.
  const answer = buildAnswer(route, outcome, reply)
  const isRecorded = await insert.record(pipeline.buildAudit({ route, outcome, request: context }))
  if (!isRecorded) throw await insert.explain()
  return answer
}

/** Everything inside the transaction. Its last statement records the change and carries the commit. */
async function commitChange<Deps>(
  served: Served<Deps>,
  tx: Database,
  key: IdempotencyKey | undefined,
): Promise<{ result: Answer | Problem; notes: string }> {
  const { pipeline, route, context } = served
  context.db = tx
  const outcome = await handleCounted(served, tx)
  // Serialized before the commit: a failure rolls back.
  const result = buildResult(served, outcome)
  const kept = key && !(result instanceof Problem) ? { key, answer: buildKept(served, outcome, result) } : undefined
  const notes = await pipeline.recordChange(tx, { route, outcome, request: context, kept }).catch((error: unknown) => {
    throw isKeyAwaited(error) ? buildInProgress() : error
  })
  return { result, notes }
}

function buildResult<Deps>(served: Served<Deps>, outcome: Outcome<unknown>): Answer | Problem {
  if (isShownRefusal(outcome)) return answerRefusal(served, outcome)
  return outcome.kind === 'refusal' ? outcome.problem : buildAnswer(served.route, outcome, served.reply)
}

/** What a refusal is answered with instead of its problem, which is logged like one that is sent. */
function answerRefusal<Deps>({ route, reply, request }: Served<Deps>, outcome: ShownRefusal): Answer {
  request.problem = outcome.problem
  return buildAnswer(route, outcome, reply)
}

function buildKept<Deps>({ route, reply }: Served<Deps>, outcome: Outcome<unknown>, answer: Answer): KeptAnswer {
  const account = outcome.kind === 'refusal' ? null : (outcome.keptFor ?? outcome.changed?.[0]?.account ?? null)
  const payload = buildRepeatPayload(route, outcome, reply)
  return { status: answer.status, payload, location: answer.headers.location, account }
}

/** Slow work before the transaction, for a row that the caller reaches. */
async function prepare<Deps>(served: Served<Deps>): Promise<void> {
  const { route, deps, context } = served
  if (!route.prepare) return
  await checkReach(served)
  context.prepared = await route.prepare(deps, context)
}

/** Whether the row of the path is within the accounts of a caller whose permission holds in some only. Throws not-found. */
async function checkReach<Deps>({ route, deps, context }: Served<Deps>): Promise<void> {
  if (context.scope !== 'all') await route.reach?.(deps, context)
}

/** Handles a read that may be long: it takes no connection of other requests, and its statements have an end of their own. */
async function handleBounded<Deps>(served: Served<Deps>): Promise<Outcome<unknown>> {
  const { pipeline, route, context } = served
  context.db = pipeline.readDb
  try {
    if (route.isExpensive || isExpensive(context.listing)) return await takeTurn(served, () => handle(served))
    return await handle(served).catch(refuseLongRead)
  } finally {
    context.db = pipeline.db
  }
}

/** Runs expensive work in the turn of its caller. */
function takeTurn<Deps, Result>({ pipeline, context }: Served<Deps>, work: () => Promise<Result>): Promise<Result> {
  const accounts = context.scope === 'all' ? [] : context.scope
  return pipeline.readInTurn({ holder: nameReader(context.caller), accounts }, work).catch(refuseLongRead)
}

function refuseLongRead(error: unknown): never {
  if (!isStatementTimeout(error)) throw error
  throw new Problem(
    'read_too_expensive',
    `The read was ended after ${READ_LIMIT_MS / 1000} s. Narrow it: add filters=created_at|gte|<instant> or a filter by ` +
      'an id, and leave out count and a sort by another field than created_at.',
  )
}

/** Handles a request and counts it against its strict limit, where that was left to here. Over the limit nothing holds. */
async function handleCounted<Deps>(served: Served<Deps>, tx: Database): Promise<Outcome<unknown>> {
  const counting = served.request.countLater?.(tx)
  if (!counting) return handle(served)
  const [counted, handled] = await Promise.allSettled([counting, handle(served)])
  if (counted.status === 'rejected') throw counted.reason
  if (handled.status === 'rejected') throw handled.reason
  return handled.value
}

/** Loads the row of the path, and calls the operation. */
async function handle<Deps>(served: Served<Deps>): Promise<Outcome<unknown>> {
  const { route, deps, context } = served
  await checkReach(served)
  if (route.load) context.target = await route.load(deps, context as never)
  return route.handle(deps, context)
}
