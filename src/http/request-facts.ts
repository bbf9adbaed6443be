import type { FastifyRequest } from 'fastify'
import type { Clock } from '../clock.ts'
import type { Listing } from '../listing/listing.ts'
import type { Caller, PermissionScope } from './caller.ts'
import type { RequestFacts } from './route.ts'

const NO_BODY = Buffer.alloc(0)

/** Builds what operations know of a request. `caller` throws on a public route, `listing` on one that lists nothing. */
export function buildRequestFacts(
  clock: Pick<Clock, 'now'>,
  request: FastifyRequest,
): RequestFacts<unknown, unknown, unknown> {
  let listing: Listing | undefined
  return {
    params: request.params,
    query: request.query,
    body: request.body,
    get caller(): Caller {
      if (!request.caller) throw new Error('a public route asked for its caller')
      return request.caller
    },
    scope: request.scope ?? [],
    now: new Date(clock.now()),
    get listing(): Listing {
      if (!listing) throw new Error('the route declares no list')
      return listing
    },
    set listing(read: Listing) {
      listing = read
    },
    requestId: request.id,
    trace: request.trace?.stored ?? null,
    address: request.ip,
    headers: request.headers,
    rawBody: request.rawBody ?? NO_BODY,
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    caller?: Caller
    scope?: PermissionScope
    rawBody?: Buffer
  }
}
