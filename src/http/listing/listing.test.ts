import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import type { AccountId } from '../../base/id.ts'
import { Problem } from '../problem/problem.ts'
import type { PermissionScope } from '../shape/caller.ts'
import { decodeCursor, encodeCursor } from './cursor.ts'
import { FILTERS_LIMIT, type LikeRule, listOperators } from './filter.ts'
import { buildListQuery, type ListFields, parseListing } from './listing.ts'
import { joinValues, parseValue, splitValues } from './value.ts'

const fields: ListFields = {
  name: { type: 'text', sortable: true, like: 'few-rows' },
  webhook: { type: 'uuid' },
  attempts: { type: 'integer', sortable: true },
  is_test: { type: 'boolean' },
  created_at: { type: 'timestamp', sortable: true },
}
const ID = '01890000-0000-7000-8000-000000000001'
const ACCOUNT = ID as AccountId

function findErrors(query: Record<string, unknown>) {
  try {
    parseListing(query, fields)
  } catch (error) {
    if (error instanceof Problem && error.code === 'validation_failed') return error.errors
    throw error
  }
  return undefined
}

describe('list parameters', () => {
  test('default to newest first, 50 a page, no filter and no total', () => {
    expect(parseListing({}, fields)).toEqual({
      filters: [],
      sort: { field: 'created_at', descending: true },
      pageSize: 50,
      after: undefined,
      count: false,
    })
  })

  test('a list without created_at is sorted by its first sortable field', () => {
    const other: ListFields = { kind: { type: 'text' }, name: { type: 'text', sortable: true } }
    expect(parseListing({}, other).sort).toEqual({ field: 'name', descending: false })
  })

  test.each([1, 200, '1', '200', '050'])('page_size %s is accepted', (page_size) => {
    expect(parseListing({ page_size }, fields).pageSize).toBe(Number(page_size))
  })

  test.each([0, 201, -1, 1.5, '0', '201', '1e2', ' 5', '', 'all', ['5', '6'], null])(
    'page_size %s is refused',
    (page_size) => {
      expect(findErrors({ page_size })).toMatchObject([{ path: 'page_size' }])
    },
  )

  test.each([
    ['count', 'yes'],
    ['count', '1'],
    ['sort', 'webhook'],
    ['sort', 'unknown'],
    ['sort', '--created_at'],
    ['sort', ''],
    ['sort', 'constructor'],
    ['sort', '__proto__'],
    ['sort', ['name', 'attempts']],
  ])('%s=%s is a 422 at its parameter', (path, value) => {
    expect(findErrors({ [path]: value })).toMatchObject([{ path }])
  })

  test('an unknown sort lists the allowed ones', () => {
    expect(findErrors({ sort: 'x' })?.[0]?.message).toContain(
      'name, -name, attempts, -attempts, created_at, -created_at',
    )
  })

  test('filters may be one or repeated, and a 422 lists all errors', () => {
    expect(parseListing({ filters: 'attempts|eq|3' }, fields).filters).toEqual([
      { field: 'attempts', operator: 'eq', values: [3] },
    ])
    expect(parseListing({ filters: ['attempts|gt|3', 'name|like|xyz'] }, fields).filters).toHaveLength(2)
    expect(findErrors({ filters: ['attempts|gt|3', 'nope|eq|1', 'name|is|x'] })).toMatchObject([
      { path: 'filters.1', code: 'unknown_field' },
      { path: 'filters.2', code: 'unknown_operator' },
    ])
  })

  test('an unknown field lists the fields, an unknown operator the operators of that field', () => {
    expect(findErrors({ filters: 'nope|eq|1' })?.[0]?.message).toContain('name, webhook, attempts, is_test, created_at')
    expect(findErrors({ filters: 'webhook|like|1' })?.[0]?.message).toContain('eq, ne, in, nin, null')
  })

  test('the number of filters is bounded', () => {
    const filter = 'attempts|eq|3'
    expect(parseListing({ filters: Array(FILTERS_LIMIT).fill(filter) }, fields).filters).toHaveLength(FILTERS_LIMIT)
    expect(findErrors({ filters: Array(FILTERS_LIMIT + 1).fill(filter) })).toMatchObject([{ path: 'filters' }])
  })
})

describe('like', () => {
  const endless: ListFields = { ...fields, name: { type: 'text' } }
  const parse = (filters: string[]) => () => parseListing({ filters }, endless)
  const since = '2026-09-11T08:00:00Z'

  test('takes three characters, and not two of four bytes', () => {
    expect(parseListing({ filters: 'name|like|abc' }, fields).filters).toHaveLength(1)
    expect(findErrors({ filters: 'name|like|\u{1F600}\u{1F600}' })?.[0]?.message).toContain('at least 3 characters')
  })

  test.each([`gte|${since}`, `gt|${since}`, `eq|${since}`, `in|${since}`, `between|${since},${since}`])(
    'on a table without end is taken with created_at|%s',
    (range) => {
      expect(parse(['name|like|abc', `created_at|${range}`])().filters).toHaveLength(2)
    },
  )

  test.each([
    [],
    [`created_at|lt|${since}`],
    [`created_at|lte|${since}`],
    ['created_at|null|false'],
    ['attempts|gte|1'],
  ])('on a table without end is refused with %j, and the remedy is named', (...others) => {
    expect(parse(['attempts|eq|1', 'name|like|abc', ...others.flat()])).toThrow(
      expect.objectContaining({
        code: 'validation_failed',
        errors: [{ path: 'filters.1', code: 'range', message: expect.stringContaining('created_at|gte|') }],
      }),
    )
    expect(parse(['name|eq|abc', ...others.flat()])().filters.length).toBeGreaterThan(0)
  })

  test.each<[LikeRule | undefined, PermissionScope, boolean]>([
    [undefined, 'all', false],
    [undefined, [ACCOUNT], false],
    ['in-range', [ACCOUNT], false],
    ['of-accounts', 'all', false],
    ['of-accounts', [ACCOUNT], true],
    ['of-accounts', [], true],
    ['indexed', 'all', true],
    ['few-rows', 'all', true],
  ])('by the rule %s is taken without a range of a caller who reaches %s: %s', (rule, scope, isTaken) => {
    const own: ListFields = { ...fields, name: { type: 'text', ...(rule && { like: rule }) } }
    const take = (...filters: string[]) => parseListing({ filters }, own, scope).filters.length
    if (isTaken) expect(take('name|like|abc')).toBe(1)
    else expect(() => take('name|like|abc')).toThrow('filters.0: takes like on name only together with a range of time')
    expect(take('name|like|abc', `created_at|gte|${since}`)).toBe(2)
    expect(() => take('name|like|ab', `created_at|gte|${since}`)).toThrow('needs at least 3 characters')
  })
})

describe('filters', () => {
  test.each([
    ['name|eq|', ['']],
    ['name|eq|a|b', ['a|b']],
    ['name|in|a,b', ['a', 'b']],
    ['name|in|a\\,b,c', ['a,b', 'c']],
    ['name|in|a\\\\,b', ['a\\', 'b']],
    ['name|eq|C:\\temp', ['C:\\temp']],
    ['name|eq|end\\', ['end\\']],
    ['name|in|,', ['', '']],
    ['name|like|50%_', ['50%_']],
    ['name|between|a,b', ['a', 'b']],
    ['name|null|true', [true]],
    ['is_test|null|false', [false]],
    ['is_test|eq|false', [false]],
    ['attempts|in|-1,0,999999999999999', [-1, 0, 999_999_999_999_999]],
    [`webhook|eq|${ID}`, [ID]],
    ['created_at|gte|2026-09-11T08:00:00Z', [new Date('2026-09-11T08:00:00Z')]],
    ['created_at|lt|2024-02-29T08:00:00.5-02:30', [new Date('2024-02-29T10:30:00.500Z')]],
  ])('%s reads as %j', (filters, values) => {
    expect(parseListing({ filters }, fields).filters[0]?.values).toEqual(values)
  })

  test.each([
    '',
    '|',
    '||',
    'name',
    'name|eq',
    'name|eq|a,b',
    'name|EQ|a',
    'name|like|',
    'name|like|ab',
    'name|like|é€',
    'name|like|a,b',
    'name|null|',
    'name|null|TRUE',
    'name|null|true,false',
    'name|eq|\u0000',
    'toString|eq|a',
    '__proto__|eq|a',
    'attempts|between|1',
    'attempts|between|1,2,3',
    'attempts|between|1,',
    'attempts|eq|',
    'attempts|eq|1.5',
    'attempts|eq|1e3',
    'attempts|eq|0x1',
    'attempts|eq| 1',
    'attempts|eq|1000000000000000',
    'attempts|like|1',
    'is_test|eq|1',
    'is_test|lt|true',
    'webhook|gt|x',
    `webhook|eq|${ID.toUpperCase().replace('8', 'A')}`,
    'webhook|eq|',
    'created_at|eq|2026-09-11',
    'created_at|eq|2026-02-29T00:00:00Z',
    'created_at|eq|2026-13-01T00:00:00Z',
    'created_at|eq|2026-01-01T24:00:00Z',
    'created_at|eq|2026-01-01T00:00:00',
    'created_at|eq|2026-01-01T00:00:00.1234Z',
    'created_at|eq|0000-01-01T00:00:00Z',
    'created_at|eq|1969-12-31T23:59:59.999Z',
    'created_at|eq|1970-01-01T00:00:00+00:01',
    'created_at|eq|9999-12-31T23:59:59-01:00',
    'created_at|eq|1757577600000',
  ])('%j is refused at filters.0', (filters) => {
    expect(findErrors({ filters })).toMatchObject([{ path: 'filters.0' }])
  })

  test('the error of a value of the wrong type names the field and the rule', () => {
    expect(findErrors({ filters: 'attempts|eq|many' })?.[0]?.message).toBe(
      'has a value for attempts that must be a whole number, at most 15 digits',
    )
  })

  test('escaped values of any text round-trip', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1 }), (values) => {
        expect(splitValues(joinValues(values))).toEqual(values)
      }),
    )
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[\\,ab]*$/), { minLength: 1 }), (values) => {
        expect(splitValues(joinValues(values))).toEqual(values)
      }),
    )
  })

  test('any text is parsed or refused, without an unexpected error', () => {
    const wild = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc
        .tuple(fc.constantFrom(...Object.keys(fields)), fc.constantFrom(...listOperators('text'), 'x'), fc.string())
        .map((parts) => parts.join('|')),
    )
    fc.assert(
      fc.property(fc.array(wild), fc.string(), fc.string(), (filters, sort, cursor) => {
        findErrors({ filters })
        findErrors({ sort })
        findErrors({ cursor })
      }),
    )
  })

  test('a timestamp is precise to the millisecond, and any instant of the years 1970 to 9999 is accepted', () => {
    const dates = fc.date({
      min: new Date('1970-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    })
    fc.assert(
      fc.property(dates, (date) => {
        expect(parseValue('timestamp', date.toISOString())).toEqual(date)
      }),
    )
  })
})

describe('cursors', () => {
  test('round-trip', () => {
    const value = new Date('2026-09-11T08:00:00.123Z')
    const cursor = encodeCursor('-created_at', { value, id: ID })
    expect(cursor).toMatch(/^[\w-]+$/)
    expect(decodeCursor(cursor, '-created_at', 'timestamp')).toEqual({ value, id: ID })
  })

  const good = encodeCursor('-created_at', { value: new Date(0), id: ID })
  const wrap = (content: unknown) => Buffer.from(JSON.stringify(content)).toString('base64url')
  test.each([
    ['of another sort', encodeCursor('created_at', { value: new Date(0), id: ID })],
    ['of another field', encodeCursor('name', { value: 'a', id: ID })],
    ['cut short', good.slice(0, -3)],
    ['padded', `${good}==`],
    ['in the other base64', Buffer.from('["-created_at","?>?>","~~~"]').toString('base64')],
    ['empty', ''],
    ['plain text', 'next'],
    ['a value of another type', wrap(['-created_at', 'soon', ID])],
    ['a value that is no text', wrap(['-created_at', 5, ID])],
    ['without an id', wrap(['-created_at', '1970-01-01T00:00:00.000Z'])],
    ['an id that is no text', wrap(['-created_at', '1970-01-01T00:00:00.000Z', {}])],
    ['an object', wrap({ sort: '-created_at' })],
    ['null', wrap(null)],
    ['not UTF-8', Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]).toString('base64url')],
  ])('%s is a 422 at cursor', (_, cursor) => {
    expect(findErrors({ cursor })).toMatchObject([{ path: 'cursor', code: 'cursor' }])
  })
})

describe('the query schema of a list', () => {
  test('lists every field with its type and operators, and accepts only its own and the extra members', () => {
    const schema = buildListQuery(fields, { type: 'object', properties: { format: { type: 'string' } } } as never)
    const text = JSON.stringify(schema)
    for (const [name, { type }] of Object.entries(fields))
      expect(text).toContain(`\`${name}\` (${type}): ${listOperators(type).join(', ')}`)
    expect(schema).toMatchObject({ additionalProperties: false, properties: { format: { type: 'string' } } })
  })

  test('refuses an extra member that hides one of its own', () => {
    expect(() => buildListQuery(fields, { properties: { cursor: {} } } as never)).toThrow('cursor')
  })
})
