import type { AccountId } from '../../base/id.ts'
import { withinAnswerLimit } from '../../postgres/cell/answer-limit.ts'
import { isDatabaseUnavailable } from '../../postgres/statement/database.ts'
import type { ReadEach } from '../route/cell-key.ts'
import type { PermissionScope } from '../shape/caller.ts'
import { askDatabases, buildCellAway } from './ask-databases.ts'
import type { Served } from './perform.ts'
import type { Place, Places } from './pipeline-deps.ts'

/** How long a cell that did not answer is left out at once, ms: not every request waits for it. */
const SILENT_MS = 5_000

/** A database with what a caller reaches of it. */
interface Part {
  place: Place
  scope: PermissionScope
}

/** The databases of a caller, home first, and the cells that this process cannot use. */
interface Parts {
  parts: readonly Part[]
  missing: readonly string[]
}

class CellSilentError extends Error {}

/** When the cells that did not answer in time are asked again. */
const silentUntilMs = new WeakMap<Place, number>()

/**
 * Builds the reads in each database that a caller reaches. Throws what home fails with, any failure of a cell but that it is
 * away, and 503 when all are away.
 */
export function buildReadEach<Deps>({ context, pipeline, route }: Served<Deps>, places: Places): ReadEach {
  return async (read, accounts) => {
    const { parts, missing } = await listParts(places, context.scope, accounts)
    for (const cell of missing) context.missingCells.add(cell)
    const scopes = new Map(parts.map(({ place, scope }) => [place, scope]))
    const answers = await askDatabases([...scopes.keys()], (place) => {
      const scope = scopes.get(place) ?? []
      // Of home: the replica, where the route is read there.
      if (place.cell === null) return read({ cell: null, db: context.db, scope })
      const { readDb, db } = place.pipeline
      return askCell(place, pipeline.clock.now(), () =>
        read({ cell: place.cell, db: route.isExpensive ? readDb : db, scope }),
      )
    })
    for (const answered of answers) {
      if (!('failed' in answered)) continue
      const { failed, place } = answered
      if (!(failed instanceof CellSilentError) && !isDatabaseUnavailable(failed)) throw failed
      if (place.cell !== null) context.missingCells.add(place.cell)
    }
    const found = answers.flatMap((answered) => ('answer' in answered ? [answered] : []))
    if (found.length === 0) throw buildCellAway([...context.missingCells])
    return found.map(({ answer }) => answer as Awaited<ReturnType<typeof read>>)
  }
}

/** The answer of a cell, unless it was silent a moment ago. */
async function askCell<Result>(place: Place, nowMs: number, ask: () => Promise<Result>): Promise<Result> {
  if ((silentUntilMs.get(place) ?? 0) > nowMs) throw new CellSilentError()
  return withinAnswerLimit(ask(), () => {
    silentUntilMs.set(place, nowMs + SILENT_MS)
    return new CellSilentError()
  })
}

async function listParts(places: Places, scope: PermissionScope, only?: readonly AccountId[]): Promise<Parts> {
  const home = { place: places.home, scope }
  if (scope === 'all' && !only) {
    const { places: all, missing } = await places.list()
    const cells = all.filter((place) => place !== places.home).map((place) => ({ place, scope }))
    return { parts: [home, ...cells], missing }
  }
  const reached = only ? only.filter((account) => scope === 'all' || scope.includes(account)) : (scope as AccountId[])
  const located = [...(await places.locateAll(reached))]
  const missing = located.flatMap(([, at]) => ('missing' in at ? [at.missing] : []))
  const byPlace = new Map<Place, AccountId[]>()
  for (const [account, at] of located) if (!('missing' in at)) byPlace.set(at, [...(byPlace.get(at) ?? []), account])
  const ofHome = byPlace.get(places.home) ?? []
  byPlace.delete(places.home)
  const cells = [...byPlace].map(([place, accounts]) => ({ place, scope: accounts }))
  const isHomeAsked = only !== undefined || ofHome.length > 0 || cells.length + missing.length === 0
  return { parts: [...(isHomeAsked ? [{ place: places.home, scope: ofHome }] : []), ...cells], missing }
}
