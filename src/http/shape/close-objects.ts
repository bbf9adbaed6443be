import type { TSchema } from './schema-type.ts'

type Node = {
  type?: unknown
  properties?: Record<string, TSchema>
  items?: TSchema
  anyOf?: TSchema[]
  enum?: unknown[]
}

/**
 * Closes every object of a request's schema, also in lists: an unknown member is a 422
 * (docs/contract/api.md#unknown-members). An object that sets `additionalProperties` keeps it. A schema with an `enum`
 * loses its `type`, so that a wrong value is one error. Throws on alternatives: a broken rule would be one error for
 * each of them.
 */
export function closeObjects(schema: TSchema): TSchema {
  const { properties, items, anyOf, enum: values } = schema as Node
  if (anyOf) throw new Error('a request takes no alternatives (anyOf): use nullable or enumSchema')
  const { type: _, ...untyped } = schema as Node
  return {
    ...(properties && { additionalProperties: false }),
    ...(values ? untyped : schema),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, member]) => [name, closeObjects(member)])),
    }),
    ...(items && !Array.isArray(items) && { items: closeObjects(items) }),
  }
}
