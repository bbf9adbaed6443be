import type { GuardedFetch } from '../../outbound/guarded-fetch.ts'
import { buildExcerpt, pickResponseHeaders } from '../../outbound/send/post-result.ts'

/** An answer of a SCIM service. */
export interface ScimAnswer {
  status: number
  /** Headers stored for diagnosis. */
  headers: Record<string, string>
  /** The first 1 KiB of the body, as text. */
  excerpt: string
  /** The object in the body; undefined for an empty body, and for an error without one. */
  body: Record<string, unknown> | undefined
}

/** Sends one request. `path` is appended to the base of the service. Rejects without a usable answer. */
export type ScimService = (
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: object,
) => Promise<ScimAnswer>

/** A 2xx answer that is not of a SCIM service, such as the page of a proxy. */
export class UnusableAnswer extends Error {
  readonly answer: ScimAnswer
  constructor(answer: ScimAnswer) {
    super('the answer is not one of a SCIM service')
    this.name = 'UnusableAnswer'
    this.answer = answer
  }
}

/** RFC 7644, 3.1. */
const SCIM_TYPE = 'application/scim+json'

/** Dependencies of the requests to a service. */
export interface ScimServiceParts {
  fetch: GuardedFetch
  /** User agent, with the version of this service. */
  userAgent: string
  /** Base URL, without `/Users`. */
  base: string
  token: string
  /** More headers of each request. */
  headers: Record<string, string>
  signal: AbortSignal
}

/** Builds the requests to a service. */
export function buildScimService({
  fetch,
  userAgent,
  token,
  headers,
  signal,
  ...parts
}: ScimServiceParts): ScimService {
  const base = withoutEndSlashes(parts.base)
  return async (method, path, body) => {
    const response = await fetch(`${base}${path}`, {
      method,
      headers: {
        accept: SCIM_TYPE,
        authorization: `Bearer ${token}`,
        'user-agent': userAgent,
        ...headers,
        ...(body && { 'content-type': SCIM_TYPE }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal,
    })
    const bytes = new Uint8Array(await response.arrayBuffer())
    const answer: ScimAnswer = {
      status: response.status,
      headers: pickResponseHeaders(Object.fromEntries(response.headers)),
      excerpt: buildExcerpt(bytes),
      body: parse(bytes),
    }
    const isEmpty = bytes.length === 0 && method !== 'GET' && method !== 'POST'
    if (isSuccess(answer) && answer.body === undefined && !isEmpty) throw new UnusableAnswer(answer)
    return answer
  }
}

/** In linear time; the pattern `/+$` is quadratic. */
function withoutEndSlashes(url: string): string {
  let end = url.length
  while (url[end - 1] === '/') end -= 1
  return url.slice(0, end)
}

/** Whether the request succeeded. */
export function isSuccess({ status }: ScimAnswer): boolean {
  return status >= 200 && status < 300
}

/** Whether a unique value is taken by another user of the service (RFC 7644, 3.3 and 3.12). */
export function isTaken({ status, body }: ScimAnswer): boolean {
  return status === 409 || (status === 400 && body?.scimType === 'uniqueness')
}

/** Whether the service does not support the method, the path or the form of a request. */
export function isUnsupported({ status }: ScimAnswer): boolean {
  return status === 400 || status === 404 || status === 405 || status === 501
}

/** Longest wait that a service may ask for, in milliseconds. */
const WAIT_LIMIT_MS = 3_600_000

/**
 * Delay before the next request, in milliseconds, for a busy service: 429, or 503 with `Retry-After` (RFC 9110, 10.2.3;
 * of its two forms the number of seconds). Undefined for every other answer.
 */
export function readWait({ status, headers }: ScimAnswer): number | undefined {
  const given = headers['retry-after'] ?? ''
  const seconds = /^\d{1,9}$/.test(given) ? Number(given) : undefined
  if (status !== 429 && (status !== 503 || seconds === undefined)) return undefined
  return Math.min(WAIT_LIMIT_MS, (seconds ?? 0) * 1000)
}

/** The object in a body. */
function parse(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes))
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
