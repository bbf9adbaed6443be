import { readFileSync } from 'node:fs'
import type { OpenApiDocument } from '../../src/reference/openapi-document.ts'
import type { operations } from './api.generated.ts'

/** The committed document: what a client of another language is generated from. */
export const DOCUMENT = JSON.parse(
  readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'),
) as OpenApiDocument

/** The members of a request that the operation takes; those that it needs nothing for may be left out. */
type Present<Members> = {
  [Name in keyof Members as undefined extends Members[Name] ? never : Name]: Members[Name]
} & { [Name in keyof Members as undefined extends Members[Name] ? Name : never]?: Members[Name] }

/** What an operation is sent. */
export type RequestOf<Id extends keyof operations> = Present<Pick<operations[Id], 'path' | 'query' | 'body'>>

/** A call of the API, typed by nothing but `openapi.json`. Throws on a problem. */
export type TypedCall = <Id extends keyof operations>(
  id: Id,
  request: RequestOf<Id>,
) => Promise<operations[Id]['answer']>

const PLACES = new Map(
  Object.entries(DOCUMENT.paths).flatMap(([url, item]) =>
    Object.entries(item).map(
      ([method, { operationId }]) => [operationId, { method: method.toUpperCase(), url }] as const,
    ),
  ),
)

/** Calls operations of a running service by their ids. */
export function buildTypedClient(service: { origin: string; token: string }): TypedCall {
  return async (id, request) => {
    const place = PLACES.get(id)
    if (!place) throw new Error(`openapi.json has no operation ${id}`)
    const { path = {}, query = {}, body } = request as Record<string, Record<string, unknown> | undefined>
    const url = new URL(
      place.url.replace(/\{(\w+)\}/g, (_, name: string) => String(path[name])),
      service.origin,
    )
    for (const [name, value] of Object.entries(query))
      for (const one of [value].flat()) url.searchParams.append(name, String(one))
    const response = await fetch(url, {
      method: place.method,
      headers: {
        authorization: `Bearer ${service.token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer = await response.json()
    if (!response.ok) throw new Error(`${id}: ${response.status} ${JSON.stringify(answer)}`)
    return answer
  }
}
