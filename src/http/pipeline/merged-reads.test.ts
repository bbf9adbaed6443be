import { describe, expect, test } from 'vitest'
import type { AccountId } from '../../base/id.ts'
import type { DirectedAccount, DirectoryState } from '../../postgres/cell/directory.store.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { MergeSource } from '../listing/merge.ts'
import { buildMergedReads, hasStayed } from './merged-reads.ts'
import type { Place, Places } from './pipeline-deps.ts'

const A = 'a' as AccountId
const B = 'b' as AccountId

const placed = (account: AccountId, cell: string | null, version = 1, isMoving = false): DirectedAccount => ({
  ...{ account, cell, version, isMoving },
})
const state = (accounts: DirectedAccount[], epoch = '1', cells: string[] = []): DirectoryState => ({
  ...{ epoch, cells, accounts },
})

function buildPlace(cell: string | null): Place {
  const readDb = { cell } as unknown as Database
  return { cell, parts: undefined, pipeline: { readDb } as Place['pipeline'] }
}

/** Home and the cells `one` and `two`, with what the directory says at each look; the last answer stays. */
function buildPlaces(looks: DirectoryState[], open = ['one', 'two']) {
  const all = [...open, null].map(buildPlace)
  const asked: unknown[] = []
  const places: Places = {
    home: all.at(-1) as Place,
    list: async () => ({ places: all, missing: [] }),
    find: async () => all.at(-1) as Place,
    findAll: async (accounts) => new Map(accounts.map((account) => [account, all.at(-1) as Place])),
    locateAll: async (accounts) => new Map(accounts.map((account) => [account, all.at(-1) as Place])),
    forget: (account) => void asked.push(['forget', account]),
    readDirectory: async (known, withMoving) => {
      asked.push([[...known], withMoving])
      return (looks.length > 1 ? looks.shift() : looks[0]) as DirectoryState
    },
  }
  return { places, asked }
}

const nameOf = async ({ db, scope, elsewhere }: MergeSource) => [(db as unknown as Place).cell, scope, elsewhere]

describe('a merged read', () => {
  test('of all accounts asks every database, and leaves out those that are in the other one of their move', async () => {
    const { places } = buildPlaces([state([placed(A, 'one', 1, true), placed(B, 'two')])])
    expect(await buildMergedReads(places, 'all').ask(nameOf)).toEqual([
      ['one', 'all', []],
      ['two', 'all', [A]],
      [null, 'all', [A]],
    ])
  })

  test('of some accounts asks each of them in its database alone', async () => {
    const { places, asked } = buildPlaces([state([placed(A, 'one'), placed(B, null)])])
    expect(await buildMergedReads(places, [A, B]).ask(nameOf)).toEqual([
      ['one', [A], []],
      [null, [B], []],
    ])
    expect(asked).toEqual([
      [[A, B], false],
      [[A, B], false],
    ])
  })

  test('is made again when an account changed its database meanwhile, and refused when that goes on', async () => {
    const moved = [state([placed(A, null)]), state([placed(A, 'one', 2)])]
    const { places } = buildPlaces([...moved, state([placed(A, 'one', 2)])])
    expect(await buildMergedReads(places, [A, B]).ask(nameOf)).toEqual([
      ['one', [A], []],
      [null, [B], []],
    ])
    const restless = Array.from({ length: 20 }, (_, n) => state([], String(n)))
    const refused = buildMergedReads(buildPlaces(restless).places, 'all').ask(nameOf)
    await expect(refused).rejects.toMatchObject({ code: 'account_moving', status: 503 })
  })

  test('names a cell that has accounts and that this process does not know', async () => {
    const { places } = buildPlaces([state([], '1', ['one', 'three'])])
    const refused = buildMergedReads(places, 'all').ask(nameOf)
    await expect(refused).rejects.toMatchObject({ status: 503, message: expect.stringContaining('three') })
    const unknown = buildPlaces([state([placed(A, 'three')])])
    await expect(buildMergedReads(unknown.places, [A]).ask(nameOf)).rejects.toMatchObject({ status: 503 })
    expect(unknown.asked).toContainEqual(['forget', A])
  })

  test('tells a cell that is away from a read that fails', async () => {
    const { places } = buildPlaces([state([])])
    const failing = (error: unknown) => async (source: MergeSource) => {
      if ((source.db as unknown as Place).cell === 'two') throw error
    }
    const away = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    await expect(buildMergedReads(places, 'all').ask(failing(away))).rejects.toMatchObject({
      code: 'dependency_unavailable',
      message: expect.stringContaining('two'),
    })
    const fault = new Error('a fault')
    await expect(buildMergedReads(places, 'all').ask(failing(fault))).rejects.toBe(fault)
  })
})

test.each([
  ['nothing', state([placed(A, null)]), state([placed(A, null)]), true],
  ['another database', state([placed(A, null)]), state([placed(A, 'one')]), false],
  ['another version: there and back', state([placed(A, null, 1)]), state([placed(A, null, 3)]), false],
  ['a move that ended where it was', state([placed(A, null, 1, true)]), state([placed(A, null)]), true],
  ['an account that is no more in the directory', state([placed(A, null)]), state([]), false],
])('%s changed: the read holds is %s', (_what, before, after, holds) => {
  expect(hasStayed(before as DirectoryState, after as DirectoryState, 'all')).toBe(holds)
})

test('a move that another process took meanwhile counts for lists of all accounts alone', () => {
  expect(hasStayed(state([], '1'), state([], '2'), 'all')).toBe(false)
  expect(hasStayed(state([], '1'), state([], '2'), [A])).toBe(true)
})
