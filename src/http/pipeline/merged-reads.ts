import type { AccountId } from '../../base/id.ts'
import type { DirectoryState } from '../../postgres/cell/directory.store.ts'
import type { MergedReads, MergeSource } from '../listing/merge.ts'
import { Problem } from '../problem/problem.ts'
import type { PermissionScope } from '../shape/caller.ts'
import { askEveryDatabase, buildCellAway } from './ask-databases.ts'
import type { Place, Places } from './pipeline-deps.ts'

/** How often a read is made that saw accounts change their database. */
const TRIES = 5

/** The part of a merged read in one database. */
interface PlacedSource extends Omit<MergeSource, 'db'> {
  place: Place
}

/**
 * Reads in the databases of the accounts of `scope`, or in every one, home last. Accounts may move meanwhile: the directory is read
 * before and after, and what was read while an account changed its database is read again.
 */
export function buildMergedReads(places: Places, scope: PermissionScope, withHome = false): MergedReads {
  return {
    among: (accounts) => buildMergedReads(places, accounts, true),
    ask: async (read) => {
      for (let tries = 0; tries < TRIES; tries += 1) {
        const before = await places.readDirectory(scope === 'all' ? [] : scope, scope === 'all')
        const sources = scope === 'all' ? await listAll(places, before) : await listOwn(places, before, scope)
        const byPlace = new Map(sources.map((source) => [source.place, source]))
        if (withHome && !byPlace.has(places.home))
          byPlace.set(places.home, { place: places.home, scope: [], elsewhere: [] })
        const answers = await askEveryDatabase([...byPlace.keys()], (place) => {
          const source = byPlace.get(place) as PlacedSource
          return read({ db: place.pipeline.readDb, scope: source.scope, elsewhere: source.elsewhere })
        })
        const known = before.accounts.map(({ account }) => account)
        const after = await places.readDirectory(known, scope === 'all')
        if (hasStayed(before, after, scope)) return answers
      }
      throw new Problem('account_moving', 'Accounts of this list are moving to another database. Try again.', {
        headers: { 'retry-after': '1' },
      })
    },
  }
}

/** Whether nothing that was read in between may have been read in two databases, or in none. Pure. */
export function hasStayed(before: DirectoryState, after: DirectoryState, scope: PermissionScope): boolean {
  const now = new Map(after.accounts.map((each) => [each.account, each]))
  const isSame = before.accounts.every(({ account, cell, version }) => {
    const found = now.get(account)
    return found?.cell === cell && found.version === version
  })
  // One account of a scope is read in one database, whatever is copied meanwhile.
  return isSame && (scope !== 'all' || before.epoch === after.epoch)
}

async function listAll(places: Places, { cells, accounts }: DirectoryState): Promise<PlacedSource[]> {
  const { places: all, missing } = await places.list()
  const known = new Set(all.map(({ cell }) => cell))
  const away = new Set([...missing, ...cells.filter((name) => !known.has(name))])
  if (away.size > 0) throw buildCellAway([...away])
  return all.map((place) => {
    const elsewhere = accounts.filter(({ cell, isMoving }) => isMoving && cell !== place.cell)
    return { place, scope: 'all', elsewhere: elsewhere.map(({ account }) => account) }
  })
}

/** Each account in its database, as the directory says now. */
async function listOwn(
  places: Places,
  { accounts }: DirectoryState,
  scope: readonly AccountId[],
): Promise<PlacedSource[]> {
  const cellOf = new Map(accounts.map(({ account, cell }) => [account, cell]))
  const { places: open } = await places.list()
  const byCell = Map.groupBy(new Set(scope), (account) => cellOf.get(account) ?? null)
  return Promise.all(
    [...byCell].map(async ([cell, own]) => {
      const place = open.find((each) => each.cell === cell) ?? (await openPlace(places, own[0] as AccountId, cell))
      return { place, scope: own, elsewhere: [] }
    }),
  )
}

/** A cell that was added since this process looked. */
async function openPlace(places: Places, account: AccountId, cell: string | null): Promise<Place> {
  places.forget(account)
  const place = await places.find(account)
  if (place.cell !== cell) throw buildCellAway([cell ?? ''])
  return place
}
