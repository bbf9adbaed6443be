import { hash } from 'node:crypto'
import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'

/** Caches what is built from a schema and `context`, by the object, then by its text: routes share most schemas. */
export function keepCompiled<Compiled>(): (schema: object, context: string, build: () => Compiled) => Compiled {
  const byObject = new WeakMap<object, Map<string, Compiled>>()
  const byText = new Map<string, Compiled>()
  return (schema, context, build) => {
    const known = byObject.get(schema) ?? new Map<string, Compiled>()
    byObject.set(schema, known)
    const found = known.get(context)
    if (found !== undefined) return found
    const key = `${context} ${JSON.stringify(schema)}`
    const built = byText.get(key) ?? build()
    byText.set(key, built)
    known.set(context, built)
    return built
  }
}

const buildCompiler = SerializerSelector()
const keepSerializer = keepCompiled<(body: unknown) => string>()
const digests = new WeakMap<object, string>()

/**
 * Fastify's own factory of serializers, except that equal schemas are compiled once, at the first answer that needs one:
 * to compile them all takes a tenth of a start. `shared` holds the targets of `$ref`.
 */
export const buildSerializerCompiler: typeof buildCompiler = (shared, options) => {
  const compile = buildCompiler(shared, options)
  const context = Object.values(shared as Record<string, object>)
    .map(digest)
    .join()
  return (route) =>
    keepSerializer(route.schema as object, context, () => {
      let serialize: ((body: unknown) => string) | undefined
      return (body) => {
        serialize ??= compile(route) as (body: unknown) => string
        return serialize(body)
      }
    })
}

function digest(schema: object): string {
  const found = digests.get(schema) ?? hash('sha256', JSON.stringify(schema), 'base64')
  digests.set(schema, found)
  return found
}
