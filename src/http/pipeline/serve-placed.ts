import { readRefusedAccounts } from '../../postgres/cell/account-fence.ts'
import { isDatabaseUnavailable } from '../../postgres/statement/database.ts'
import type { MergedReads } from '../listing/merge.ts'
import { Problem } from '../problem/problem.ts'
import type { Answer } from '../route/answer.ts'
import { readIdempotencyKey } from '../route/idempotency.ts'
import { buildCellAway } from './ask-databases.ts'
import type { Served } from './perform.ts'
import type { Place } from './pipeline-deps.ts'
import { checkOwnerStays, type FoundPlace, findPlace, hasCells } from './place.ts'
import { buildReadEach } from './read-each.ts'

interface PlacedSteps<Deps> {
  /** Validates, and calls `place` when the database can be found. Returns the request in it. */
  check: (served: Served<Deps>, place: (served: Served<Deps>) => Promise<Served<Deps>>) => Promise<Served<Deps>>
  perform: (served: Served<Deps>) => Promise<Answer>
}

/**
 * Serves a request in the database of its rows. When the fence of that database refuses it, or its row is gone, the
 * directory is read again, and the request is repeated once in the other database.
 */
export async function servePlaced<Deps>(served: Served<Deps>, steps: PlacedSteps<Deps>): Promise<Answer> {
  let found: FoundPlace | undefined
  const place = async (given: Served<Deps>) => {
    found = await findRequestPlace(given)
    return found ? moveTo(given, found.place, found.merged) : given
  }
  const placed = await steps.check(served, place).catch((error: unknown) => throwNamed(error, found))
  if (!found) return steps.perform(placed)
  try {
    await checkOwner(served, found)
    return await steps.perform(placed)
  } catch (error) {
    if (!forgetStale(served, found, error)) throwNamed(error, found)
    const before: Place = found.place
    found = await findRequestPlace(served)
    if (!found || found.place === before) throw error
    return await steps
      .perform(moveTo(served, found.place, found.merged))
      .catch((later: unknown) => throwNamed(later, found))
  }
}

async function checkOwner<Deps>({ pipeline: { places }, route: { cell }, context }: Served<Deps>, found: FoundPlace) {
  if (places && cell?.by === 'row' && cell.changesOwner) await checkOwnerStays(places, found, context)
}

/** The database of a request; undefined for a route of home, and in a service without cells: nothing is asked then. */
async function findRequestPlace<Deps>(served: Served<Deps>): Promise<FoundPlace | undefined> {
  const { pipeline, route, request, context } = served
  const { places } = pipeline
  if (!route.cell || route.cell.by === 'operation' || !places || !(await hasCells(places))) return undefined
  if (route.cell.by === 'each') {
    context.readEach = buildReadEach(served, places)
    return undefined
  }
  return findPlace(places, route.cell, { route, context, key: readIdempotencyKey(request, route) })
}

/** The same request in another database. */
export function moveTo<Deps>(served: Served<Deps>, { pipeline, parts }: Place, merged?: MergedReads): Served<Deps> {
  const { context, depsIn } = served
  context.db = pipeline.db
  context.merge(merged)
  context.target = undefined
  context.prepared = undefined
  return { ...served, pipeline, deps: parts ? depsIn(parts) : served.deps }
}

/** Forgets what the directory said of the accounts of a request that came to the wrong database; false for any other error. */
function forgetStale<Deps>({ pipeline: { places } }: Served<Deps>, { owner }: FoundPlace, error: unknown): boolean {
  const accounts = new Set(readRefusedAccounts(error))
  const isGone = error instanceof Problem && error.code === 'not_found'
  if (isGone && owner?.account) accounts.add(owner.account)
  for (const account of accounts) places?.forget(account)
  return accounts.size > 0
}

/** Throws an error with the name of the cell that does not answer. */
export function throwNamed(error: unknown, found: Pick<FoundPlace, 'place'> | undefined): never {
  const cell = found?.place.cell
  if (cell && isDatabaseUnavailable(error)) throw buildCellAway([cell], error)
  throw error
}
