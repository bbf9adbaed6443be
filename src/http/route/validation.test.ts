import { type TSchema, Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { closeObjects } from '../shape/close-objects.ts'
import { enumSchema, nullable, UuidSchema } from './schema.ts'
import { buildFieldErrors, compileValidator } from './validation.ts'

function findErrors(schema: TSchema, value: unknown, httpPart: 'body' | 'querystring' = 'body') {
  const validate = compileValidator({ schema, httpPart, method: 'POST', url: '/' }) as ((value: unknown) => boolean) & {
    errors?: Parameters<typeof buildFieldErrors>[0]
  }
  return validate(value) ? [] : buildFieldErrors(validate.errors ?? [])
}

const body = closeObjects(
  Type.Object({
    url: Type.String({ maxLength: 10 }),
    account: Type.Optional(nullable(UuidSchema)),
    status: Type.Optional(enumSchema(['open', 'closed'])),
    events: Type.Optional(Type.Array(Type.Object({ id: UuidSchema }), { minItems: 1 })),
    more: Type.Optional(Type.Object({ any: Type.String() }, { additionalProperties: true })),
  }),
)
const ID = '01890000-0000-7000-8000-000000000001'

describe('bodies', () => {
  test.each([
    { url: 'a' },
    { url: 'a', account: null },
    { url: 'a', account: ID, status: 'open', events: [{ id: ID }] },
    { url: 'a', more: { any: 'b', other: 1 } },
  ])('%j is valid', (value) => {
    expect(findErrors(body, value)).toEqual([])
  })

  test.each([
    [{}, 'url', 'required'],
    [{ url: 'a', more: {} }, 'more.any', 'required'],
    [{ url: 'a', extra: 1 }, 'extra', 'unknown_member'],
    [{ url: 'a', events: [{ id: ID, x: 1 }] }, 'events.0.x', 'unknown_member'],
    [{ url: 'a', events: [{ id: ID }, { id: 'no' }] }, 'events.1.id', 'pattern'],
    [{ url: 'a', events: [] }, 'events', 'minItems'],
    [{ url: 'a'.repeat(11) }, 'url', 'maxLength'],
    [{ url: true }, 'url', 'type'],
    [{ url: 'a', account: 5 }, 'account', 'type'],
    [{ url: 'a', account: 'no' }, 'account', 'pattern'],
    [{ url: 'a', status: 'ajar' }, 'status', 'enum'],
    [{ url: 'a', status: 5 }, 'status', 'enum'],
  ])('%j is one error, at %s as %s', (value, path, code) => {
    expect(findErrors(body, value)).toMatchObject([{ path, code }])
  })

  test('the message lists the allowed values', () => {
    expect(findErrors(body, { url: 'a', status: 'ajar' })[0]?.message).toBe('must be one of open, closed')
    expect(findErrors(body, { url: 'a', status: 5 })[0]?.message).toBe('must be one of open, closed')
    expect(findErrors(body, { url: 'a', account: 5 })[0]?.message).toBe('must be string or null')
  })

  test.each<[object, string, object | undefined]>([
    [{ url: 'a'.repeat(11) }, 'maxLength', { limit: 10 }],
    [{ url: 'a', events: [] }, 'minItems', { limit: 1 }],
    [{ url: 'a', account: 5 }, 'type', { types: ['string', 'null'] }],
    [{ url: 'a', account: 'no' }, 'pattern', { pattern: expect.stringMatching(/^\^\[0-9a-f\]/) }],
    [{ url: 'a', status: 'ajar' }, 'enum', { values: ['open', 'closed'] }],
    [{}, 'required', undefined],
    [{ url: 'a', extra: 1 }, 'unknown_member', undefined],
  ])('the params of %j are those of %s: %j', (value, code, params) => {
    const [error] = findErrors(body, value)
    expect([error?.code, error?.params]).toEqual([code, params])
  })

  test('the params of other rules have their bound, format or value, and 20 values at most', () => {
    const words = Array.from({ length: 30 }, (_, index) => `word-${index}`)
    const schema = closeObjects(
      Type.Object({
        at: Type.String({ format: 'date-time' }),
        kind: Type.Literal('one'),
        many: enumSchema(words),
        size: Type.Integer({ maximum: 5 }),
      }),
    )
    expect(findErrors(schema, { at: 'now', kind: 'two', many: 'no', size: 6 })).toMatchObject([
      { path: 'at', code: 'format', params: { format: 'date-time' } },
      { path: 'kind', code: 'const', params: { values: ['one'] } },
      { path: 'many', code: 'enum', params: { values: words.slice(0, 20) } },
      { path: 'size', code: 'maximum', params: { limit: 5 } },
    ])
  })

  test('nothing is coerced, filled in or removed', () => {
    const schema = closeObjects(Type.Object({ count: Type.Integer(), flag: Type.Boolean() }))
    expect(findErrors(schema, { count: '5', flag: 'true' }).map((error) => error.path)).toEqual(['count', 'flag'])
  })
})

describe('query strings', () => {
  test('are text and are coerced to the types of the schema', () => {
    const schema = closeObjects(
      Type.Object({ size: Type.Integer(), all: Type.Boolean(), names: Type.Array(Type.String()) }),
    )
    const query = { size: '5', all: 'true', names: 'one' }
    expect(findErrors(schema, query, 'querystring')).toEqual([])
    expect(query).toEqual({ size: 5, all: true, names: ['one'] })
    expect(findErrors(schema, { size: '5x', all: 'yes', names: 'one' }, 'querystring')).toHaveLength(2)
  })
})

describe('closing the objects of a request', () => {
  test('closes nested objects and those in lists, and leaves the given schema unchanged', () => {
    const given = Type.Object({ one: Type.Array(Type.Object({ a: Type.String() })) })
    const closed = closeObjects(given)
    expect(findErrors(closed, { one: [{ a: 'x', b: 1 }] })).toMatchObject([{ path: 'one.0.b' }])
    expect(findErrors(given, { one: [{ a: 'x', b: 1 }] })).toEqual([])
  })

  test('refuses a schema with alternatives', () => {
    const schema = Type.Object({ one: Type.Union([Type.String(), Type.Integer()]) })
    expect(() => closeObjects(schema)).toThrow(/anyOf/)
  })

  test('leaves a map open to any name', () => {
    const schema = closeObjects(Type.Object({ labels: Type.Record(Type.String(), Type.String()) }))
    expect(findErrors(schema, { labels: { any: 'name' } })).toEqual([])
  })
})

describe('the work that an input can cause', () => {
  test('a text over its maxLength is not matched against its pattern', () => {
    // Needs 2^40 steps for this text if it is matched.
    const schema = Type.Object({ name: Type.String({ maxLength: 39, pattern: '^(a+)+$' }) })
    expect(findErrors(schema, { name: `${'a'.repeat(40)}!` })).toMatchObject([{ path: 'name', code: 'maxLength' }])
  })

  test('a text of its maxLength is matched, and the message holds the pattern', () => {
    const schema = Type.Object({ name: Type.String({ maxLength: 3, pattern: '^[a-z]+$' }) })
    const message = 'must match ^[a-z]+$'
    const params = { pattern: '^[a-z]+$' }
    for (const name of ['ab1', '😀😀😀'])
      expect(findErrors(schema, { name })).toEqual([{ path: 'name', code: 'pattern', message, params }])
  })

  test('a small input lists all its errors, at most 50; a large one its first', () => {
    const extra = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, at]))
    expect(findErrors(body, { url: 5, account: 5, ...extra(10) })).toHaveLength(12)
    expect(findErrors(body, extra(1_000))).toHaveLength(50)
    expect(findErrors(body, { url: 5, account: 5, note: 'x'.repeat(70_000) })).toHaveLength(1)
  })

  test('a list counts with each value and the digits of its index, to the last that is small', () => {
    const schema = closeObjects(Type.Object({ a: Type.Integer(), list: Type.Array(Type.Integer()) }))
    const count = (length: number) => findErrors(schema, { a: 'x', b: 1, list: Array(length).fill(0) }).length
    // 12,772 values with 52,750 digits, and 10 around them, of 65,536: one more counts 6.
    expect([count(12_772), count(12_773)]).toEqual([2, 1])
  })

  test('a path is cut to 200 characters', () => {
    const [error] = findErrors(body, { url: 'a', ['x'.repeat(10_000)]: 1 })
    expect(error?.path).toBe(`${'x'.repeat(200)}…`)
  })

  test('a schema with an unknown format is refused at its first input', () => {
    const schema = Type.String({ format: 'hostname' })
    expect(() => findErrors(schema, 'example.com')).toThrow(/hostname/)
  })
})
