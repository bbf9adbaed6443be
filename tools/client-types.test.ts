import { expect, test } from 'vitest'
import type { JsonSchema, OpenApiDocument } from '../src/reference/openapi-document.ts'
import { renderClientTypes } from './client-types.ts'

function renderSchema(schema: JsonSchema): string {
  const document = { paths: {}, components: { schemas: { Thing: schema } } } as unknown as OpenApiDocument
  return /^ {4}Thing: ([\s\S]*?)\n {2}\}\n/m.exec(renderClientTypes(document))?.[1] ?? ''
}

test.each([
  [{ type: 'string', format: 'uuid' }, 'string'],
  [{ type: 'integer' }, 'number'],
  [{ type: ['string', 'null'] }, 'string | null'],
  [{ enum: ['a', 'b', null] }, '"a" | "b" | null'],
  [{ type: 'boolean', const: true }, 'true'],
  [{}, 'unknown'],
  [{ $ref: '#/components/schemas/Other' }, "components['schemas']['Other']"],
  [{ anyOf: [{ $ref: '#/components/schemas/Other' }, { type: 'null' }] }, "components['schemas']['Other'] | null"],
  [{ type: 'array', items: { type: ['string', 'null'] } }, 'Array<string | null>'],
  [{ type: 'object', additionalProperties: { type: 'integer' } }, 'Record<string, number>'],
  [{ type: 'object', additionalProperties: {} }, 'Record<string, unknown>'],
  [{ type: ['array', 'null'], items: { type: 'string' } }, 'Array<string> | null'],
] as const)('%j is the type %s', (schema, type) => {
  expect(renderSchema(schema as JsonSchema)).toBe(type)
})

test('a member that is not required is optional, and its description cannot end the comment', () => {
  const properties = { 'a-b': { type: 'string' }, c: { type: 'integer', description: 'Ends */ here.' } }
  expect(renderSchema({ type: 'object', properties, required: ['a-b'] })).toBe(
    '{\n      "a-b": string\n      /** Ends *\\/ here. */\n      c?: number\n    }',
  )
})

test('an unknown type of JSON Schema and a dangling reference throw', () => {
  expect(() => renderSchema({ type: 'file' })).toThrow('file')
  expect(() => renderSchema({ $ref: '#/paths/x' })).toThrow('no named schema')
})
