import { Type as TypeBox } from 'typebox'
import { expect, test } from 'vitest'
import { Type } from './schema-type.ts'

/** Every builder, with and without options, and nested. */
function buildAll(T: typeof Type) {
  const name = T.String({ minLength: 1, description: 'A name.' })
  return {
    String: [T.String(), name],
    Boolean: [T.Boolean(), T.Boolean({ default: true })],
    Integer: [T.Integer(), T.Integer({ minimum: 0 })],
    Number: [T.Number(), T.Number({ maximum: 1 })],
    Null: [T.Null(), T.Null({ description: 'Nothing.' })],
    Unknown: [T.Unknown(), T.Unknown({ description: 'Anything.' })],
    Literal: [T.Literal('word'), T.Literal(true), T.Literal(1, { description: 'One.' })],
    Array: [T.Array(name), T.Array(name, { maxItems: 3 })],
    Union: [T.Union([name, T.Null()]), T.Union([name], { description: 'One of them.' })],
    Record: [T.Record(T.String(), name), T.Record(T.String(), T.Unknown(), { description: 'By name.' })],
    Unsafe: [T.Unsafe({ type: ['string', 'null'] }), T.Unsafe(T.Optional(name))],
    Optional: [T.Optional(name), T.Optional(T.Object({ name }))],
    Object: [
      T.Object({}),
      T.Object({ name, maybe: T.Optional(name) }, { additionalProperties: false }),
      T.Object({ maybe: T.Optional(T.Array(T.Object({ name: T.Optional(name) }))) }),
      T.Object({ unsafe: T.Unsafe(T.Optional(name)) }),
    ],
  }
}

test('every builder makes the schema that TypeBox makes', () => {
  const built = buildAll(Type)
  expect(Object.keys(built).sort()).toEqual(Object.keys(Type).sort())
  // As JSON, because the order of the members is that of the documents.
  const expected = JSON.stringify(buildAll(TypeBox as unknown as typeof Type))
  expect(JSON.stringify(built)).toBe(
    expected.replaceAll(/"patternProperties":\{"\^\.\*\$":(\{.*?\})\}/g, '"additionalProperties":$1'),
  )
})

test('a record takes any key without a pattern: also one with a line break', () => {
  expect(Type.Record(Type.String(), Type.Integer())).toEqual({
    type: 'object',
    additionalProperties: { type: 'integer' },
  })
})

test('Optional marks a copy, which spreads and JSON do not show, and the mark of either library counts in the other one', () => {
  const name = Type.String()
  const maybe = Type.Optional(name)
  expect(Object.keys(maybe)).toEqual(['type'])
  expect(Type.Object({ name, maybe }).required).toEqual(['name'])
  expect(TypeBox.Object({ name, maybe }).required).toEqual(['name'])
  expect(Type.Object({ name, maybe: TypeBox.Optional(name) }).required).toEqual(['name'])
})
