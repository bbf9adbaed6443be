import fc from 'fast-check'
import { type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import { beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { Problem } from '../problem/problem.ts'
import type { PermissionScope } from '../shape/caller.ts'
import { encodeCursor } from './cursor.ts'
import {
  applyListing,
  buildPage,
  COUNT_LIMIT,
  type ListFields,
  type Listing,
  type ListSource,
  parseListing,
} from './listing.ts'
import { buildList, buildPart, countListed, findListed, readPage } from './page.ts'
import { joinValues } from './value.ts'

interface Tables {
  listed: {
    document_id: string
    name: string | null
    label: string
    attempts: number
    is_test: boolean | null
    webhook: string | null
    created_at: Date
  }
}

const fields: ListFields = {
  name: { type: 'text', like: 'few-rows' },
  text: { type: 'text', sortable: true, column: 'label', like: 'indexed' },
  attempts: { type: 'integer', sortable: true },
  is_test: { type: 'boolean' },
  webhook: { type: 'uuid' },
  created_at: { type: 'timestamp', sortable: true },
}

const START_MS = Date.UTC(2026, 8, 11)
const ids = buildIdMaker({ now: () => START_MS }, systemRandom)

const database = await openForFile(createTestDatabase({ content: 'empty' }))
const db = database.db as unknown as Kysely<Tables>
await sql`create table listed (
    document_id uuid primary key, name text, label text not null, attempts integer not null, is_test boolean,
    webhook uuid, created_at timestamptz(3) not null)`.execute(db)

function buildRow(changes: Partial<Tables['listed']> = {}): Tables['listed'] {
  const row = { name: null, label: 'same', attempts: 0, is_test: null, webhook: null, created_at: new Date(START_MS) }
  return { document_id: ids.next(), ...row, ...changes }
}

async function fill(rows: Tables['listed'][]) {
  await db.deleteFrom('listed').execute()
  await db.insertInto('listed').values(rows).execute()
}

async function findPage(query: Record<string, unknown>) {
  const listing = parseListing(query, fields)
  const found = await applyListing(db.selectFrom('listed').selectAll(), listing, fields).execute()
  return buildPage(found, listing, ({ listing_sort: _sort, listing_id: _id, ...row }: (typeof found)[number]) => row)
}

async function findAll(query: Record<string, unknown>, betweenPages: () => Promise<void> = async () => {}) {
  const rows: Tables['listed'][] = []
  let cursor: string | undefined
  do {
    const page = await findPage({ ...query, ...(cursor && { cursor }) })
    rows.push(...page.rows)
    cursor = page.pagination.next_cursor ?? undefined
    await betweenPages()
  } while (cursor)
  return rows
}

async function count<Known, Table extends keyof Known, Found>(
  query: SelectQueryBuilder<Known, Table, Found>,
  listing: Listing,
  source?: ListSource,
) {
  const list = { scope: 'all' as const, parts: () => [buildPart(query, source)] }
  const { total, is_total_exact: isExact } = await countListed(database.db, { ...list, listing, fields })
  expect(isExact).toBe(true)
  return total
}

async function findLabels(filters: string | string[]) {
  return (await findAll({ filters, sort: 'text' })).map((row) => row.label)
}

describe('paging', () => {
  const many = Array.from({ length: 1000 }, (_, at) =>
    buildRow({ attempts: at % 3, created_at: new Date(START_MS + Math.floor(at / 250)) }),
  )

  test.each(['created_at', '-created_at', 'attempts', '-attempts', 'text', '-text'])(
    'sort=%s over 1,000 rows with equal values lists each once, in order',
    async (sort) => {
      await fill(many)
      const rows = await findAll({ sort, page_size: 33 })
      expect(new Set(rows.map((row) => row.document_id)).size).toBe(1000)
      expect(rows).toHaveLength(1000)
      const field = sort.replace('-', '')
      const values = rows.map((row) => Number(field === 'attempts' ? row.attempts : row.created_at))
      const ordered = values.toSorted((a, b) => (sort.startsWith('-') ? b - a : a - b))
      if (field !== 'text') expect(values).toEqual(ordered)
    },
  )

  test('rows inserted between two pages neither hide nor repeat an older one', async () => {
    await fill(many)
    const rows = await findAll({ page_size: 100 }, async () => {
      const edges = [START_MS - 1, START_MS, START_MS + 2, START_MS + 9]
      await db
        .insertInto('listed')
        .values(edges.map((ms) => buildRow({ created_at: new Date(ms) })))
        .execute()
    })
    const seen = rows.map((row) => row.document_id)
    expect(new Set(seen).size).toBe(seen.length)
    expect(many.filter((row) => !seen.includes(row.document_id))).toEqual([])
  })

  test('a full last page has no next one; one row more has', async () => {
    await fill(many.slice(0, 10))
    expect((await findPage({ page_size: 10 })).pagination).toEqual({ page_size: 10, next_cursor: null })
    const page = await findPage({ page_size: 9 })
    expect(page.rows).toHaveLength(9)
    expect(page.pagination.next_cursor).not.toBeNull()
    expect((await findPage({ page_size: 9, cursor: page.pagination.next_cursor })).rows).toHaveLength(1)
  })

  test('a list without rows is an empty last page', async () => {
    await db.deleteFrom('listed').execute()
    expect(await findPage({})).toEqual({ rows: [], pagination: { page_size: 50, next_cursor: null } })
  })

  test('the rows of a page are those of the query, each mapped once', async () => {
    await fill(many.slice(0, 1))
    expect((await findPage({})).rows).toEqual([many[0]])
  })

  test('the total counts all pages, with the filters and the conditions of the query', async () => {
    await fill(many)
    const listing = parseListing({ filters: 'attempts|eq|0', page_size: 5 }, fields)
    expect(await count(db.selectFrom('listed'), listing)).toBe(334)
    const first = db.selectFrom('listed').selectAll().where('created_at', '=', new Date(START_MS))
    expect(await count(first, listing)).toBe(84)
  })

  test.each([
    ['the limit of a total', COUNT_LIMIT, { total: COUNT_LIMIT, is_total_exact: true }],
    ['one row more', COUNT_LIMIT + 1, { total: COUNT_LIMIT, is_total_exact: false }],
  ])('a total of %s says whether it is exact', async (_name, rows, expected) => {
    await db.deleteFrom('listed').execute()
    await sql`insert into listed select gen_random_uuid(), null, 'same', n % 2, null, null, ${new Date(START_MS)}
      from generate_series(1, ${rows}) n`.execute(db)
    const list = { scope: 'all' as const, parts: () => [buildPart(db.selectFrom('listed'))] }
    const listing = parseListing({}, fields)
    expect(await countListed(database.db, { ...list, listing, fields })).toEqual(expected)
    const half = parseListing({ filters: 'attempts|eq|0' }, fields)
    expect(await countListed(database.db, { ...list, listing: half, fields })).toMatchObject({ is_total_exact: true })
  })

  test('a page deep in the list is found through the index', async () => {
    await fill(many)
    await sql`create index listed_created_idx on listed (created_at desc, document_id desc)`.execute(db)
    await sql`analyze listed`.execute(db)
    const cursor = encodeCursor('-created_at', { value: new Date(START_MS + 1), id: many[300]!.document_id })
    const listing = parseListing({ cursor, page_size: 5 }, fields)
    const plan = await applyListing(db.selectFrom('listed').select('attempts'), listing, fields).explain(
      'text',
      sql`costs off`,
    )
    const text = JSON.stringify(plan)
    expect(text).toContain('listed_created_idx')
    expect(text).toContain('Index Cond')
    expect(text).not.toContain('Sort')
  })

  test('columns are qualified in a join', async () => {
    await fill(many.slice(0, 3))
    const listing = parseListing({ filters: 'attempts|gte|1' }, fields)
    const query = db
      .selectFrom('listed as one')
      .innerJoin('listed as two', 'two.document_id', 'one.document_id')
      .select('one.attempts')
    const found = await applyListing(query, listing, fields, { table: 'one' }).execute()
    expect(found.map((row) => row.attempts)).toEqual([2, 1])
    expect(await count(query, listing, { table: 'one' })).toBe(2)
  })

  test('a cursor with an id of another type is a 422', async () => {
    const cursor = encodeCursor('-created_at', { value: new Date(START_MS), id: "' or 1=1" })
    await expect(findPage({ cursor })).rejects.toMatchObject({ code: 'validation_failed' })
  })

  test('a list with another unique column pages by it', async () => {
    await fill(['a', 'b', 'c'].map((label) => buildRow({ label })))
    const source = { idColumn: 'label' }
    const query = db.selectFrom('listed').select('label')
    const first = parseListing({ sort: 'text', page_size: 2 }, fields)
    const page = buildPage(await applyListing(query, first, fields, source).execute(), first, (row) => row.label)
    expect(page.rows).toEqual(['a', 'b'])
    const next = parseListing({ sort: 'text', page_size: 2, cursor: page.pagination.next_cursor }, fields)
    expect(await applyListing(query, next, fields, source).execute()).toMatchObject([{ label: 'c' }])
  })
})

describe('a list of some accounts', () => {
  // The column `webhook` stands for that of an account.
  const [first = '', second = '', other = ''] = [ids.next(), ids.next(), ids.next()]
  const owners = [first, second, other, null]
  const rows = Array.from({ length: 400 }, (_, at) =>
    buildRow({ webhook: owners[at % 4]!, attempts: at % 7, created_at: new Date(START_MS + (at % 90)) }),
  )
  const scoped = (scope: 'all' | readonly string[]) =>
    buildList(scope as PermissionScope, (own) => {
      const all = db.selectFrom('listed').selectAll()
      return own ? all.where('webhook', '=', own) : all
    })
  const readAll = async (scope: 'all' | readonly string[], query: Record<string, unknown>) => {
    const found: string[] = []
    let cursor: string | undefined
    do {
      const listing = parseListing({ ...query, ...(cursor && { cursor }) }, fields)
      const toRow = (row: Tables['listed']) => row.document_id
      const page = await readPage(database.db, scoped(scope), { listing, fields, toRow })
      expect(page.data.length).toBeLessThanOrEqual(listing.pageSize)
      found.push(...page.data)
      cursor = page.pagination.next_cursor ?? undefined
    } while (cursor)
    return found
  }
  beforeAll(() => fill(rows))

  test.each(['created_at', '-created_at', 'attempts', '-attempts'])(
    'sort=%s lists the rows of these accounts, each once, as the list of all has them',
    async (sort) => {
      for (const scope of [[first], [first, second], [second, first, second], [other, ids.next()]]) {
        const own = new Set(rows.filter(({ webhook }) => scope.includes(webhook ?? '')).map((row) => row.document_id))
        const ofAll = (await readAll('all', { sort, page_size: 200 })).filter((id) => own.has(id))
        expect(ofAll).toHaveLength(own.size)
        expect(await readAll(scope, { sort, page_size: 13 })).toEqual(ofAll)
      }
    },
  )

  test('no account has no rows', async () => {
    expect(await readAll([], {})).toEqual([])
    const listing = parseListing({}, fields)
    expect(await countListed(database.db, { ...scoped([]), listing, fields })).toEqual({
      total: 0,
      is_total_exact: true,
    })
  })

  test('filters and totals hold over all of them', async () => {
    const listing = parseListing({ filters: 'attempts|eq|3', count: true }, fields)
    const expected = rows.filter((row) => row.attempts === 3 && [first, second].includes(row.webhook ?? '')).length
    const list = { ...scoped([first, second]), listing, fields }
    expect(await findListed(database.db, list)).toHaveLength(Math.min(expected, 51))
    expect(await countListed(database.db, list)).toEqual({ total: expected, is_total_exact: true })
  })
})

describe('the matches of each operator', () => {
  const hook = '01890000-0000-7000-8000-00000000000a'
  const at = (ms: number) => new Date(START_MS + ms)
  beforeAll(() =>
    fill([
      buildRow({ label: 'a', name: 'Alpha', attempts: 1, is_test: true, webhook: hook, created_at: at(1) }),
      buildRow({ label: 'b', name: 'alphabet 100%', attempts: 2, is_test: false, created_at: at(2) }),
      buildRow({ label: 'c', name: 'under_score \\ back, comma', attempts: 3, created_at: at(3) }),
      buildRow({ label: 'd', name: 'l’été', attempts: 4, created_at: at(4) }),
      buildRow({ label: 'e', name: '', attempts: 5, created_at: at(5) }),
      buildRow({ label: 'f', name: null, attempts: 2_147_483_647, created_at: at(6) }),
    ]),
  )

  test.each([
    ['name|eq|Alpha', 'a'],
    ['name|eq|alpha', ''],
    ['name|eq|', 'e'],
    ['name|ne|Alpha', 'bcdef'],
    ['name|in|Alpha,', 'ae'],
    ['name|nin|Alpha,', 'bcdf'],
    ['name|like|ALPHA', 'ab'],
    ['name|like|100%', 'b'],
    ['name|like|00%', 'b'],
    ['name|like|er_', 'c'],
    ['name|like| \\\\ ', 'c'],
    ['name|like|back\\, comma', 'c'],
    ['name|like|ÉTÉ', 'd'],
    ['name|null|true', 'f'],
    ['name|null|false', 'abcde'],
    ['name|lt|b', 'abe'],
    ['attempts|eq|3', 'c'],
    ['attempts|eq|99999999999', ''],
    ['attempts|lt|99999999999', 'abcdef'],
    ['attempts|ne|3', 'abdef'],
    ['attempts|lt|2', 'a'],
    ['attempts|lte|2', 'ab'],
    ['attempts|gt|3', 'def'],
    ['attempts|gte|3', 'cdef'],
    ['attempts|between|2,4', 'bcd'],
    ['attempts|between|4,2', ''],
    ['attempts|in|1,3,99999999999', 'ac'],
    ['attempts|nin|1,3', 'bdef'],
    ['is_test|eq|true', 'a'],
    ['is_test|ne|true', 'bcdef'],
    ['is_test|in|true,false', 'ab'],
    ['is_test|null|true', 'cdef'],
    [`webhook|eq|${hook}`, 'a'],
    [`webhook|nin|${hook}`, 'bcdef'],
    [`created_at|gt|${at(3).toISOString()}`, 'def'],
    [`created_at|between|${at(2).toISOString()},${at(3).toISOString()}`, 'bc'],
    [`created_at|in|${at(1).toISOString()},${at(4).toISOString()}`, 'ad'],
  ])('%s', async (filter, labels) => {
    expect((await findLabels(filter)).join('')).toBe(labels)
  })

  test('a row has to match all filters', async () => {
    expect(await findLabels(['attempts|gte|2', 'name|like|alpha'])).toEqual(['b'])
  })
})

describe('hostile values', () => {
  const nasty = [
    "'; drop table listed; --",
    '%',
    '_',
    '\\',
    '\\%',
    ',',
    '|',
    '"',
    '$1',
    '{a,b}',
    '{',
    'NULL',
    '',
    "E'\\x'",
  ]
  beforeAll(() => fill(nasty.map((label) => buildRow({ label, name: label }))))

  test('any text matches exactly the rows that contain it, or is refused', async () => {
    const value = fc.oneof(fc.constantFrom(...nasty), fc.string({ unit: 'grapheme', maxLength: 8 }))
    await fc.assert(
      fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 4 }), async (values) => {
        if (values.some((text) => text.includes('\u0000'))) return
        const found = await findLabels(`name|in|${joinValues(values)}`)
        expect(found.toSorted()).toEqual(nasty.filter((label) => values.includes(label)).toSorted())
        const [first = ''] = values
        if ([...first].length < 3) return
        const like = await findLabels(`name|like|${joinValues([first])}`)
        const lower = first.toLowerCase()
        if (/^[ -~]*$/.test(first))
          expect(like.toSorted()).toEqual(nasty.filter((label) => label.toLowerCase().includes(lower)).toSorted())
      }),
      { numRuns: 150 },
    )
  })

  test('any text as field, operator, value or cursor is a 422 or a page', async () => {
    const field = fc.oneof(fc.constantFrom(...Object.keys(fields)), fc.constantFrom(...nasty, 'document_id', 'label'))
    const operator = fc.constantFrom('eq', 'ne', 'in', 'nin', 'lt', 'gte', 'between', 'like', 'null', ...nasty)
    const value = fc.oneof(fc.constantFrom(...nasty), fc.string({ unit: anyCharacter }), fc.integer().map(String))
    const filters = fc.tuple(field, operator, value).map((parts) => parts.join('|'))
    const cursor = fc.oneof(
      fc.string(),
      value.map((text) => encodeCursor('text', { value: text, id: text })),
    )
    await fc.assert(
      fc.asyncProperty(filters, fc.option(cursor, { nil: undefined }), async (chosen, given) => {
        try {
          await findPage({ filters: chosen, sort: 'text', ...(given !== undefined && { cursor: given }) })
        } catch (error) {
          expect(error).toBeInstanceOf(Problem)
          expect(error).toMatchObject({ code: 'validation_failed' })
        }
      }),
      { numRuns: 300 },
    )
    expect(await count(db.selectFrom('listed'), parseListing({ sort: 'text' }, fields))).toBe(nasty.length)
  })
})
