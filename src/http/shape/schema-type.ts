import type * as TypeBox from 'typebox'
import type { Static, TObject, TSchema, TUnsafe } from 'typebox'

export type { Static, TObject, TSchema, TUnsafe }

type Builder =
  | 'Array'
  | 'Boolean'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unknown'
  | 'Unsafe'

type Schema = Record<string, unknown>

/** The mark of a member that may be absent, as in TypeBox: not enumerable, so that it is in no JSON. */
const OPTIONAL = '~optional'

const isOptional = (schema: Schema) => OPTIONAL in schema

function buildObject(properties: Record<string, Schema>, options?: Schema): Schema {
  const required = Object.keys(properties).filter((name) => !isOptional(properties[name] as Schema))
  return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
}

/** A copy with its marks, which a spread drops. */
const copy = (schema: Schema): Schema => Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema))

const ofType = (type: string) => (options?: Schema) => ({ type, ...options })

const BUILDERS = {
  Array: (items: Schema, options?: Schema) => ({ type: 'array', items, ...options }),
  Boolean: ofType('boolean'),
  Integer: ofType('integer'),
  Literal: (value: unknown, options?: Schema) => ({ type: typeof value, const: value, ...options }),
  Null: ofType('null'),
  Number: ofType('number'),
  Object: buildObject,
  Optional: (schema: Schema) => Object.defineProperty(copy(schema), OPTIONAL, { value: true }),
  Record: (_key: Schema, value: Schema, options?: Schema) => ({
    type: 'object',
    additionalProperties: value,
    ...options,
  }),
  String: ofType('string'),
  Union: (anyOf: Schema[], options?: Schema) => ({ anyOf, ...options }),
  Unknown: (options?: Schema) => ({ ...options }),
  Unsafe: copy,
} satisfies Record<Builder, unknown>

/**
 * Builds JSON schemas with the types of TypeBox, from which `Static` derives the type of a value. The library itself is 370
 * modules for these builders, a fifth of the processor time of a start; schema-type.test.ts compares what both build. A record
 * has keys of any text: TypeBox matches each against a pattern, which keeps a state for each character of the key.
 */
export const Type = BUILDERS as unknown as Pick<typeof TypeBox.Type, Builder>
