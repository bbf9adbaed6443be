import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId } from '../../base/id.ts'
import { buildCells, type CellDatabase, CellUnknownError } from './cells.ts'

const addAccount = async (cell: string | null) => {
  const account = randomUUID() as AccountId
  await database.pool.query('insert into account_cell (account, cell, version) values ($1, $2, 3)', [account, cell])
  return account
}
const named = (name: string | null) => ({ name }) as CellDatabase
const database = await openForFile(createTestDatabase())
await database.pool.query(
  `insert into cell (name, database_url_encrypted, state, created_at, updated_at)
     select n, '', 'active', now(), now() from unnest(array['c1', 'c2', 'late']) n`,
)

/** Cells of which `late` is there after a look, and `c2` never. */
function open() {
  let [reads, looks] = [0, 0]
  const opened = new Map([['c1', named('c1')]])
  const db = database.db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      reads += 1
      return result
    },
  })
  const cells = buildCells({
    ...{ home: named(null), db, isLive: () => true, opened: () => opened },
    open: async () => {
      looks += 1
      opened.set('late', named('late'))
    },
  })
  return { cells, count: () => ({ reads, looks }) }
}

test('the databases of several accounts cost one read of the directory, and one look for cells that are new', async () => {
  const { cells, count } = open()
  const [one, late, away, back] = [
    await addAccount('c1'),
    await addAccount('late'),
    await addAccount('c2'),
    await addAccount(null),
  ]
  const never = randomUUID().toUpperCase() as AccountId
  const all = [one, late, away, back, never]
  const found = await cells.findAll([...all, one])
  expect([...found.keys()].sort()).toEqual([...all].sort())
  expect(found.get(one)).toEqual({ place: { cell: 'c1', version: 3 }, at: named('c1') })
  expect(found.get(late)).toMatchObject({ at: named('late') })
  expect(found.get(away)).toEqual(new CellUnknownError('c2'))
  expect(found.get(back)).toEqual({ place: { cell: null, version: 3 }, at: named(null) })
  expect(found.get(never)).toEqual({ place: { cell: null, version: 0 }, at: named(null) })
  expect(count()).toEqual({ reads: 1, looks: 1 })

  cells.forget(late)
  expect((await cells.find(late)).at).toEqual(named('late'))
  expect((await cells.findAll([one, back, late])).size).toBe(3)
  expect(count()).toEqual({ reads: 2, looks: 1 })
  await expect(cells.find(away)).rejects.toThrow('The cell c2 is not open')
  expect(await cells.findAll([])).toEqual(new Map())
})
