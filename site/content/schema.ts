import { type OpenApi, resolve, type Schema } from './openapi.ts'

/** A member of a body, as a row of a table. */
export interface Member {
  /** Path from the body, such as `data.items[].id`. */
  name: string
  type: string
  isRequired: boolean
  description: string
}

/** Depth of members that a table shows. */
const DEPTH = 4

/** Members of a schema, those of objects and arrays below it after them. Pure. */
export function listMembers(document: OpenApi, schema: Schema, { prefix, depth } = { prefix: '', depth: 0 }): Member[] {
  const { properties, required = [] } = merge(document, schema)
  if (properties === undefined || depth >= DEPTH) return []
  return Object.entries(properties).flatMap(([name, member]) => {
    const shape = merge(document, member)
    const isArray = shape.items !== undefined
    const inner = isArray ? (shape.items as Schema) : member
    const path = `${prefix}${name}`
    return [
      {
        name: path,
        type: nameType(document, member),
        isRequired: required.includes(name),
        description: describe(shape),
      },
      ...listMembers(document, inner, { prefix: `${path}${isArray ? '[]' : ''}.`, depth: depth + 1 }),
    ]
  })
}

/** A schema with the members of all its parts; of alternatives the first that is an object. Pure. */
function merge(document: OpenApi, schema: Schema): Schema {
  const own = resolve(document, schema as Schema & { $ref: string }) as Schema
  const described = { ...own, ...(schema.description ? { description: schema.description } : {}) }
  const alternatives = own.anyOf ?? own.oneOf
  if (alternatives) {
    const shapes = alternatives.map((part) => merge(document, part))
    const shape = shapes.find(({ properties, items }) => properties ?? items)
    return {
      ...described,
      ...(shape?.properties ? { properties: shape.properties, required: shape.required ?? [] } : {}),
      ...(shape?.items ? { items: shape.items } : {}),
    }
  }
  if (!own.allOf) return described
  const parts = own.allOf.map((part) => merge(document, part))
  return {
    ...described,
    properties: Object.assign({}, ...parts.map(({ properties }) => properties), own.properties),
    required: [...parts.flatMap(({ required = [] }) => required), ...(own.required ?? [])],
  }
}

/** Type of a schema in words: `string (uuid)`, `integer[]`, `"a" | "b"`, `string or null`. Pure. */
export function nameType(document: OpenApi, schema: Schema): string {
  const own = resolve(document, schema as Schema & { $ref: string }) as Schema
  const alternatives = own.anyOf ?? own.oneOf
  if (alternatives) return [...new Set(alternatives.map((part) => nameType(document, part)))].join(' or ')
  if (own.const !== undefined) return JSON.stringify(own.const)
  if (own.enum) return own.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (own.items) return `array of ${nameType(document, own.items)}`
  const types = [own.type ?? (own.properties || own.allOf ? 'object' : 'any')].flat()
  return types.map((type) => (own.format && type === 'string' ? `string (${own.format})` : type)).join(' or ')
}

/** A pattern that a reader knows by the name of its format. */
const IS_UUID = /0-9a-f\]\{8\}/

/** Description of a member with its bounds. Pure. */
function describe(schema: Schema): string {
  const { minLength, maxLength, minItems, maxItems, minimum, maximum, pattern } = schema
  const range = (low: number | undefined, high: number | undefined, unit: string) =>
    low === undefined && high === undefined
      ? []
      : [
          `${[low, high]
            .map((bound) => bound ?? '')
            .join(' to ')
            .trim()}${unit}`,
        ]
  const bounds = [
    ...range(minLength, maxLength, ' characters'),
    ...range(minItems, maxItems, ' items'),
    ...range(minimum, maximum, ''),
    ...(pattern && !IS_UUID.test(pattern) ? [`pattern \`${pattern}\``] : []),
    ...(schema.default === undefined ? [] : [`default \`${JSON.stringify(schema.default)}\``]),
  ]
  return [schema.description ?? '', bounds.length > 0 ? `(${bounds.join(', ')})` : ''].filter(Boolean).join(' ')
}

/** Values of members whose schema says less than their name. */
const NAMED: Readonly<Record<string, unknown>> = {
  url: 'https://example.com/webhooks',
  email: 'ada@example.com',
  name: 'Example',
}

/** A value of a schema: its examples and first alternatives, required members and those with an example. Pure. */
export function exampleOf(document: OpenApi, schema: Schema, depth = 0): unknown {
  const own = merge(document, schema)
  const given = own.examples?.[0] ?? own.example ?? own.default ?? own.const ?? own.enum?.[0]
  if (given !== undefined) return given
  if (own.properties && depth < DEPTH) {
    const { required = [] } = own
    const names = Object.keys(own.properties).filter((name) => required.length === 0 || required.includes(name))
    return Object.fromEntries(
      names.map((name) => [name, NAMED[name] ?? exampleOf(document, own.properties?.[name] as Schema, depth + 1)]),
    )
  }
  if (own.items) return [exampleOf(document, own.items, depth + 1)]
  const alternatives = own.anyOf ?? own.oneOf
  if (alternatives) return exampleOf(document, alternatives[0] as Schema, depth + 1)
  return exampleOfType(own)
}

function exampleOfType({ type, format, minimum }: Schema): unknown {
  const [first] = [type ?? 'object'].flat()
  if (first === 'string') {
    const formats: Record<string, string> = {
      uuid: '0199a3c4-5d1b-7c44-8a02-6f6f2f0e4b11',
      'date-time': '2026-09-11T08:00:00.000Z',
      email: 'ada@example.com',
      uri: 'https://example.com/webhooks',
    }
    return formats[format ?? ''] ?? 'example'
  }
  if (first === 'integer' || first === 'number') return minimum ?? 1
  if (first === 'boolean') return true
  if (first === 'array') return []
  return first === 'null' ? null : {}
}
