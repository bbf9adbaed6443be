/** The parts of `openapi.json` that the reference shows. */
export interface OpenApi {
  info: { title: string; version: string }
  tags?: { name: string; description?: string }[]
  paths: Record<string, Record<string, Operation>>
  components: Record<string, Record<string, unknown>>
}

export interface Operation {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  parameters?: (Parameter | Reference)[]
  requestBody?: { required?: boolean; content: Record<string, { schema: Schema; example?: unknown }> } | Reference
  responses: Record<string, Response | Reference>
  security?: Record<string, string[]>[]
  'x-permission'?: string
}

export interface Reference {
  $ref: string
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header' | 'cookie'
  required?: boolean
  description?: string
  schema: Schema
}

export interface Response {
  description: string
  content?: Record<string, { schema: Schema }>
}

export interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  additionalProperties?: boolean | Schema
  default?: unknown
  examples?: unknown[]
  example?: unknown
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  minimum?: number
  maximum?: number
  pattern?: string
}

/** One call of the API. */
export interface Call {
  method: string
  path: string
  area: string
  operation: Operation
}

/** Every call, in the order of the document. Pure. */
export function listCalls(document: OpenApi): Call[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      area: operation.tags[0] ?? 'other',
      operation,
    })),
  )
}

/** Target of a reference, or the value itself. Throws for a reference to nothing. Pure. */
export function resolve<Value extends object>(document: OpenApi, value: Value | Reference): Value {
  if (!('$ref' in value) || value.$ref === undefined) return value as Value
  const [, kind = '', name = ''] = /^#\/components\/([^/]+)\/(.+)$/.exec(String(value.$ref)) ?? []
  const found = document.components[kind]?.[name]
  if (found === undefined) throw new Error(`openapi.json: ${value.$ref} is not there.`)
  return resolve(document, found as Value | Reference)
}
