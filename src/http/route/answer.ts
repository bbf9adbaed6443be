import { Readable } from 'node:stream'
import { stringifySetCookie } from 'cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { buildEntityTag, holdsTag } from '../request/entity-tag.ts'
import type { AnswerCookie, DataOutcome, Outcome, RefusalOutcome } from './outcome.ts'
import type { RouteDeclaration } from './route-declaration.ts'

const JSON_TYPE = 'application/json; charset=utf-8'
const HTML_TYPE = 'text/html; charset=utf-8'

/** A refusal that is answered with something else than its problem. */
export type ShownRefusal = RefusalOutcome & Required<Pick<RefusalOutcome, 'instead'>>

/** Whether a refusal has an answer in place of its problem. */
export function isShownRefusal(outcome: Outcome<unknown>): outcome is ShownRefusal {
  return outcome.kind === 'refusal' && outcome.instead !== undefined
}

/** A response, ready to send: it is serialized, so sending it cannot fail. */
export interface Answer {
  status: number
  contentType: string | undefined
  payload: string | Readable
  headers: Record<string, string>
  cookies: readonly AnswerCookie[]
}

/** Builds the response of an outcome. Throws when the data cannot be serialized. */
export function buildAnswer(
  route: RouteDeclaration,
  outcome: Exclude<Outcome<unknown>, RefusalOutcome> | ShownRefusal,
  reply: FastifyReply,
): Answer {
  const { headers = {}, cookies = [] } = outcome
  switch (outcome.kind) {
    case 'refusal': {
      const { problem, instead } = outcome
      if ('location' in instead) {
        const { location, status = 303 } = instead
        return buildRedirect({ status, location, headers, cookies })
      }
      const named = { ...problem.headers, ...headers }
      if ('json' in instead) {
        const payload = JSON.stringify(instead.json)
        return { status: instead.status, contentType: JSON_TYPE, payload, headers: named, cookies }
      }
      return { status: problem.status, contentType: HTML_TYPE, payload: instead.html, headers: named, cookies }
    }
    case 'redirect':
      return buildRedirect({ status: outcome.status ?? 302, location: outcome.location, headers, cookies })
    case 'page':
      return {
        status: outcome.status ?? 200,
        contentType: HTML_TYPE,
        payload: outcome.html,
        headers,
        cookies,
      }
    case 'stream':
      return { status: 200, contentType: outcome.contentType, payload: outcome.body, headers, cookies }
    default: {
      const status = outcome.status ?? route.status ?? 200
      const payload = serialize(reply, status, buildBody(route, outcome))
      const named = {
        ...headers,
        ...(outcome.location !== undefined && { location: outcome.location }),
        ...(route.hasEntityTag && { etag: buildEntityTag(payload) }),
      }
      return { status, contentType: JSON_TYPE, payload, headers: named, cookies }
    }
  }
}

function buildRedirect(redirect: { location: string } & Pick<Answer, 'status' | 'headers' | 'cookies'>): Answer {
  const { location, headers, ...rest } = redirect
  return { ...rest, contentType: undefined, payload: '', headers: { ...headers, location } }
}

/** The body of a success: the envelope, or the bare data where the declaration says so. */
function buildBody(
  route: RouteDeclaration,
  { data, message, pagination, missingCells = [] }: DataOutcome<unknown>,
): unknown {
  if (route.bare) return data
  return {
    ...{ data, message },
    ...(pagination && { pagination }),
    ...(missingCells.length > 0 && { missing_cells: missingCells }),
  }
}

function serialize(reply: FastifyReply, status: number, body: unknown): string {
  const serializer = reply.getSerializationFunction(String(status))
  return serializer ? (serializer(body as Record<string, unknown>) as string) : JSON.stringify(body)
}

/** The answer of a repeat: null for the member shown once (docs/contract/api.md#secrets-in-repeated-answers). */
export function buildRepeatPayload(route: RouteDeclaration, outcome: Outcome<unknown>, reply: FastifyReply): string {
  if (outcome.kind !== undefined && outcome.kind !== 'data') return ''
  const shown = route.shownOnce && (outcome.data as Record<string, unknown>)[route.shownOnce]
  if (!route.shownOnce || shown === null)
    return serialize(reply, outcome.status ?? route.status ?? 200, buildBody(route, outcome))
  const message = `Already done under this Idempotency-Key. The ${route.shownOnce} was shown in the first answer only; rotate it if it is lost.`
  const data = { ...(outcome.data as Record<string, unknown>), [route.shownOnce]: null }
  return serialize(reply, outcome.status ?? route.status ?? 200, buildBody(route, { ...outcome, data, message }))
}

/** The value of the header `Set-Cookie` for a cookie. */
export function writeCookie({ maxAgeSeconds, ...rest }: AnswerCookie): string {
  return stringifySetCookie({ ...rest, ...(maxAgeSeconds !== undefined && { maxAge: maxAgeSeconds }) })
}

/** Whether a read has this answer already, by its `If-None-Match`: it is answered 304. */
export function isHeld({ method, headers }: FastifyRequest, { headers: { etag } }: Answer): boolean {
  return (method === 'GET' || method === 'HEAD') && etag !== undefined && holdsTag(headers['if-none-match'], etag)
}

/**
 * Sends an answer. It carries `no-store` (RFC 9111) unless its headers say otherwise; one with an `etag` that the request
 * has already is a 304. A stream is read as fast as the client takes it, and destroyed when the client disconnects.
 */
export function sendAnswer(reply: FastifyReply, answer: Answer): FastifyReply {
  reply.header('cache-control', 'no-store')
  for (const [name, value] of Object.entries(answer.headers)) reply.header(name, value)
  for (const cookie of answer.cookies) reply.header('set-cookie', writeCookie(cookie))
  if (isHeld(reply.request, answer)) return reply.code(304).send()
  reply.code(answer.status)
  if (answer.contentType) reply.type(answer.contentType)
  return reply.send(reply.request.method === 'HEAD' ? withoutReading(answer.payload) : answer.payload)
}

/** The payload for a HEAD request. Fastify drops it, but would read a stream to its end first. */
function withoutReading(payload: Answer['payload']): Answer['payload'] {
  if (typeof payload === 'string') return payload
  payload.destroy()
  return Readable.from([])
}
