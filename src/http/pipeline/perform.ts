import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  type Database,
  inTransaction,
  isDatabaseUnavailable,
  isGivenUp,
  isStatementTimeout,
  READ_LIMIT_MS,
} from '../../postgres/statement/database.ts'
import { isExpensive } from '../listing/listing.ts'
import { Problem } from '../problem/problem.ts'
import {
  type Answer,
  buildAnswer,
  buildRepeatPayload,
  isHeld,
  isShownRefusal,
  type ShownRefusal,
} from '../route/answer.ts'
import { type IdempotencyKey, isKeyAwaited, isKeyTaken, type KeptAnswer } from '../route/idempotency.store.ts'
import {
  buildInProgress,
  buildRepeatedAnswer,
  deleteExpiredAnswer,
  findAnswer,
  readIdempotencyKey,
} from '../route/idempotency.ts'
import type { RequestContext } from '../route/request-context.ts'
import { isChange, type Outcome, type Route } from '../route/route.ts'
import { addRowTag, checkCondition } from '../route/row-tag.ts'
import { type Caller, nameReader, type PermissionScope } from '../shape/caller.ts'
import type { Pipeline } from './pipeline-deps.ts'

/** A checked request with its route, the dependencies of its operations, and its reply. */
export interface Served<Deps> {
  pipeline: Pipeline
  route: Route<Deps>
  deps: Deps
  /** The dependencies with the parts of another database. */
  depsIn: (parts: object) => Deps
  request: FastifyRequest
  reply: FastifyReply
  context: RequestContext
}

/** Makes the answer of a checked request: a change in one transaction, or a read. */
export function performRequest<Deps>(served: Served<Deps>): Promise<Answer> {
  return isChange(served.route) ? performChange(served) : performRead(served)
}

async function performRead<Deps>(served: Served<Deps>): Promise<Answer> {
  const { pipeline, route, context, reply } = served
  await prepare(served)
  const outcome = await (route.list || route.isExpensive ? handleBounded(served) : read(served, pipeline.db))
  if (isShownRefusal(outcome)) return answerRefusal(served, outcome)
  if (outcome.kind === 'refusal') throw outcome.problem
  const answer = addRowTag(route, outcome, buildAnswer(route, nameMissing(outcome, context), reply))
  // A 304 is no success (docs/contract/events.md#events-of-reads): the client keeps what it read before.
  if (!isHeld(reply.request, answer)) await pipeline.recordRead({ route, outcome, request: context })
  return answer
}

/** A read with the cells that are not in it. */
function nameMissing<Read extends Outcome<unknown>>(outcome: Read, { missingCells }: RequestContext): Read {
  const isWhole = missingCells.size === 0 || (outcome.kind !== undefined && outcome.kind !== 'data')
  return isWhole ? outcome : { ...outcome, missingCells: [...missingCells].sort() }
}

/**
 * A change: one transaction holds the change, its events, its audit entry and the answer of its idempotency key. The last
 * statement inserts the key, so a first request pays no round trip for it. When a request with a key is refused, for any
 * reason, the stored answer of the first request wins.
 */
export async function performChange<Deps>(served: Served<Deps>): Promise<Answer> {
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
  await prepare(served)
  return commitPrepared(served, key)
}

/** Commits the change of a request that is prepared, with the answer of its idempotency key. */
export async function commitPrepared<Deps>(served: Served<Deps>, key: IdempotencyKey | undefined): Promise<Answer> {
  const { pipeline, route, context } = served
  const inShare = async () => {
    await context.recheckLate()
    return inTransaction(pipeline.db, (tx) => commitChange(served, tx, key))
  }
  const { signedIn: caller, scope } = context
  const commit = () => (caller ? pipeline.shareChanges({ caller, scope }, inShare) : inShare())
  const { result, invalidations } = await (route.isExpensive ? readExpensive(pipeline, context, commit) : commit())
  pipeline.afterCommit(invalidations)
  if (result instanceof Problem) throw result
  return result
}

/** Everything inside the transaction. Its last statement records the change and carries the commit. */
async function commitChange<Deps>(
  served: Served<Deps>,
  tx: Database,
  key: IdempotencyKey | undefined,
): Promise<{ result: Answer | Problem; invalidations: string }> {
  const { pipeline, route, context } = served
  context.db = tx
  const outcome = await handleCounted(served, tx)
  checkCondition(route, outcome, context.headers)
  // Serialized before the commit: a failure rolls back.
  const result = buildResult(served, outcome)
  const kept = key && !(result instanceof Problem) ? { key, answer: buildKept(served, outcome, result) } : undefined
  const invalidations = await pipeline
    .recordChange(tx, { route, outcome, request: context, kept })
    .catch((error: unknown) => {
      throw isKeyAwaited(error) ? buildInProgress() : error
    })
  return { result, invalidations }
}

function buildResult<Deps>(served: Served<Deps>, outcome: Outcome<unknown>): Answer | Problem {
  if (isShownRefusal(outcome)) return answerRefusal(served, outcome)
  if (outcome.kind === 'refusal') return outcome.problem
  return addRowTag(served.route, outcome, buildAnswer(served.route, outcome, served.reply))
}

/** Answer to a refusal in place of its problem, which is logged like one that is sent. */
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
export async function prepare<Deps>(served: Served<Deps>): Promise<void> {
  const { pipeline, route, deps, context } = served
  context.db = pipeline.db
  if (!route.prepare) return
  await checkScope(served)
  context.prepared = await route.prepare(deps, context)
}

/** Checks the row of a `handle` that ignores the scope of a caller limited to some accounts. */
async function checkScope<Deps>({ route, deps, context }: Served<Deps>): Promise<void> {
  if (route.row?.neededBy === 'scope' && context.scope !== 'all') await route.row.find(deps, context)
}

/** Handles a read that may be long: with a pool and a statement timeout of its own. */
async function handleBounded<Deps>(served: Served<Deps>): Promise<Outcome<unknown>> {
  const { pipeline, route, context } = served
  try {
    if (route.isExpensive || isExpensive(context.listing))
      return await readExpensive(pipeline, context, async () => {
        await context.recheckLate()
        return read(served, pipeline.readDb)
      })
    return await read(served, pipeline.readDb).catch(refuseLongRead)
  } finally {
    context.db = pipeline.db
  }
}

/** Handles a read, on a replica where the route declares it. A read that the replica ends is made again. */
async function read<Deps>(served: Served<Deps>, primary: Database): Promise<Outcome<unknown>> {
  const { pipeline, route, deps, context } = served
  context.db = primary
  if (!route.readsReplica || !pipeline.replicaDb || context.merged) return handle(served)
  await findTarget(served)
  context.db = pipeline.replicaDb
  try {
    return await route.handle(deps, context)
  } catch (error) {
    if (!isEndedByReplica(error, primary === pipeline.readDb)) throw error
    context.db = primary
    return route.handle(deps, context)
  }
}

/** Runs expensive work under the semaphore of its caller. */
export function readExpensive<Result>(
  { runExpensiveRead }: Pick<Pipeline, 'runExpensiveRead'>,
  { caller, scope }: { caller: Caller; scope: PermissionScope },
  work: () => Promise<Result>,
): Promise<Result> {
  const accounts = scope === 'all' ? [] : scope
  return runExpensiveRead({ holder: nameReader(caller), accounts }, work).catch(refuseLongRead)
}

function refuseLongRead(error: unknown): never {
  if (!isStatementTimeout(error)) throw error
  throw new Problem(
    'read_too_expensive',
    `The read was ended after ${READ_LIMIT_MS / 1000} s. Narrow it: add filters=created_at|gte|<instant> or a filter by ` +
      'an id, and leave out count and a sort by another field than created_at.',
  )
}

/** Handles a request and counts it against a deferred strict limit. Over the limit all is rolled back. */
async function handleCounted<Deps>(served: Served<Deps>, tx: Database): Promise<Outcome<unknown>> {
  const counting = served.request.countLater?.(tx)
  if (!counting) return handle(served)
  const [counted, handled] = await Promise.allSettled([counting, handle(served)])
  if (counted.status === 'rejected') throw counted.reason
  if (handled.status === 'rejected') throw handled.reason
  return handled.value
}

/** Finds the row of the path if needed, and calls the operation. */
async function handle<Deps>(served: Served<Deps>): Promise<Outcome<unknown>> {
  const { route, deps, context } = served
  await findTarget(served)
  return route.handle(deps, context)
}

/** A replica cancels reads that delay its replay. Its pool has the timeout of long reads, which others do not have. */
const isEndedByReplica = (error: unknown, isLong: boolean) =>
  isGivenUp(error) || isDatabaseUnavailable(error) || (!isLong && isStatementTimeout(error))

async function findTarget<Deps>(served: Served<Deps>): Promise<void> {
  const { route, deps, context } = served
  await checkScope(served)
  if (route.row?.neededBy === 'handle') context.target = await route.row.find(deps, context)
}
