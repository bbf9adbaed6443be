import { hash } from 'node:crypto'
import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'

/**
 * Caches compiled schemas by their text, for the life of the process. Routes share most of their schemas (problems, ids,
 * lists), and compiling takes the larger part of building a server. `context` is the other input of the compilation.
 */
export function keepCompiled<Compiled>(): (schema: unknown, context: string, compile: () => Compiled) => Compiled {
  const kept = new Map<string, Compiled>()
  return (schema, context, compile) => {
    const key = `${context} ${JSON.stringify(schema)}`
    const compiled = kept.get(key) ?? compile()
    kept.set(key, compiled)
    return compiled
  }
}

const buildCompiler = SerializerSelector()
const keepSerializer = keepCompiled<(body: unknown) => string>()
const digests = new WeakMap<object, string>()

/** Fastify's own factory of serializers, except that equal schemas are compiled once. `shared` holds the targets of `$ref`. */
export const buildSerializerCompiler: typeof buildCompiler = (shared, options) => {
  const compile = buildCompiler(shared, options)
  const context = Object.values(shared as Record<string, object>)
    .map(digest)
    .join()
  return (route) => keepSerializer(route.schema, context, () => compile(route))
}

function digest(schema: object): string {
  const found = digests.get(schema) ?? hash('sha256', JSON.stringify(schema), 'base64')
  digests.set(schema, found)
  return found
}
