/** The parts of an OpenAPI 3.1 document that this folder reads; the rest is plain JSON. */
export interface OpenApiDocument {
  openapi: string
  info: { title: string; version: string; description?: string }
  tags: { name: string; description?: string }[]
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, { post: Operation }>
  components: Components
}

/** The shared components. */
export interface Components {
  schemas?: Record<string, JsonSchema>
  parameters?: Record<string, Parameter>
  responses?: Record<string, Response>
  headers?: Record<string, Header>
  [kind: string]: Record<string, unknown> | undefined
}

export interface Operation {
  operationId: string
  summary?: string
  description?: string
  tags?: string[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Record<string, { schema: JsonSchema }> }
  responses: Record<string, Response>
  security?: unknown[]
  'x-permission'?: string
}

/** A parameter, or a reference to one. */
export interface Parameter {
  name?: string
  in?: string
  required?: boolean
  description?: string
  schema?: JsonSchema
  $ref?: string
}

/** A response, or a reference to one. */
export interface Response {
  description?: string
  headers?: Record<string, Header>
  content?: Record<string, { schema: JsonSchema }>
  /** Links to follow-up operations, by operation id. */
  links?: Record<string, object>
  $ref?: string
}

/** A header of an answer, or a reference to one. */
export interface Header {
  description?: string
  schema?: JsonSchema
  $ref?: string
}

/** The parts of a JSON Schema that the reference shows. */
export interface JsonSchema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  anyOf?: JsonSchema[]
  allOf?: JsonSchema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  [keyword: string]: unknown
}

/** Resolves a reference such as `#/components/schemas/Contract`; returns other schemas unchanged. */
export function resolveComponent<Part extends { $ref?: string }>(document: OpenApiDocument, part: Part): Part {
  const [, kind = '', name = ''] = /^#\/components\/(\w+)\/(.+)$/.exec(part.$ref ?? '') ?? []
  return (document.components[kind]?.[name] as Part | undefined) ?? part
}
