import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { COUNT_LIMIT } from './listing.ts'
import { addTotals, mergeRows } from './merge.ts'

const database = await openForFile(createTestDatabase())

const anyRow = fc.record({
  listing_sort: fc.string({ unit: anyCharacter, maxLength: 4 }).map((text) => text.replaceAll('\0', '')),
  listing_id: fc.uuid(),
})

describe('merged rows', () => {
  test('have the order of PostgreSQL, whatever the text, the direction and the limit', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(anyRow, { maxLength: 6 }), { maxLength: 4 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 12 }),
        async (pages, descending, limit) => {
          const direction = descending ? 'desc' : 'asc'
          const { rows } = await database.pool.query(
            `select listing_sort, listing_id::text from jsonb_to_recordset($1) as x (listing_sort text, listing_id uuid)
             order by listing_sort collate "C" ${direction}, listing_id ${direction} limit $2`,
            [JSON.stringify(pages.flat()), limit],
          )
          expect(mergeRows(pages, { descending }, limit)).toEqual(rows)
        },
      ),
      { numRuns: 150 },
    )
  })

  test('of numbers and instants are in the order of their values', () => {
    const row = (listing_sort: number | Date, listing_id = 'a') => ({ listing_sort, listing_id: `${listing_id}` })
    const numbers = [[row(10, 'a'), row(-1, 'b')], [row(9, 'c')]]
    expect(mergeRows(numbers, { descending: false }, 5).map(({ listing_sort: value }) => value)).toEqual([-1, 9, 10])
    const at = (ms: number) => new Date(ms)
    const instants = [[row(at(5), 'a')], [row(at(40), 'b'), row(at(5), 'c')]]
    expect(mergeRows(instants, { descending: true }, 5).map(({ listing_id: id }) => id)).toEqual(['b', 'c', 'a'])
  })

  test('have an id once, as the first database has it', () => {
    const row = (from: string) => ({ listing_sort: 1, listing_id: 'same', from })
    expect(mergeRows([[row('cell')], [row('home')]], { descending: false }, 5)).toEqual([row('cell')])
  })
})

test.each([
  [
    [
      [3, true],
      [4, true],
    ],
    7,
    true,
  ],
  [
    [
      [COUNT_LIMIT, true],
      [1, true],
    ],
    COUNT_LIMIT,
    false,
  ],
  [
    [
      [COUNT_LIMIT, true],
      [0, true],
    ],
    COUNT_LIMIT,
    true,
  ],
  [
    [
      [COUNT_LIMIT, false],
      [COUNT_LIMIT, false],
    ],
    COUNT_LIMIT,
    false,
  ],
  [[], 0, true],
] as const)('the totals %j are %i together, exactly: %s', (totals, total, isExact) => {
  const given = totals.map(([each, exact]) => ({ total: each, is_total_exact: exact }))
  expect(addTotals(given)).toEqual({ total, is_total_exact: isExact })
})
