import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../problem/problem.ts'
import { buildPathProblem } from '../route/known-path.ts'

/** A protocol with a handler of its own: an OAuth provider, the HTTP API of a realtime server. */
export interface ForeignProtocol {
  /** The protocol serves every path below it but declared ones, which are a 405 for other methods. */
  prefix: string
  /** Serves the raw Node request, whose body is unread, of the client at `address`. */
  handle: (request: IncomingMessage, response: ServerResponse, from: { address: string }) => void | Promise<void>
  /** Counts a request against its address before it is handled. Throws `rate_limited`. */
  limit: (request: FastifyRequest, reply: FastifyReply) => Promise<void> | void
  /** The problem of a request for a path, or by a method, that the protocol does not have. */
  findProblem?: (request: FastifyRequest) => Problem | undefined
}

/**
 * Mounts a foreign protocol in a scope of its own: the service does not parse its bodies, does not add headers to its
 * answers, and does not shape its errors but those of `findProblem`. Request ids, the rate limit of the address, the log
 * line, and the server's limits on time and connections apply.
 */
export async function mountProtocol(server: FastifyInstance, protocol: ForeignProtocol): Promise<void> {
  const { prefix, handle, limit, findProblem } = protocol
  await server.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    // The body stays in the socket until the handler reads it: the handler limits its size.
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    const serve = async (request: FastifyRequest, reply: FastifyReply) => {
      // Read now: a closed socket has no address.
      const address = request.ip
      await limit(request, reply)
      const shadowed = scope.findShadowed({ method: request.method, target: request.url })
      if (shadowed) throw shadowed
      // The router decodes a path; limit and handler use the raw one.
      if (!isBelow(prefix, request.url)) throw buildPathProblem()
      const problem = findProblem?.(request)
      if (problem) throw problem
      reply.hijack()
      reply.raw.setHeader('x-request-id', request.id)
      try {
        await handle(request.raw, reply.raw, { address })
      } catch (error) {
        request.log.error({ err: error, prefix }, 'foreign protocol failed: see docs/operations.md, unexpected errors')
        endWithFault(reply.raw)
      }
    }
    const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
    for (const url of [prefix, `${prefix}/*`])
      scope.route({ method: [...methods], url, schema: { hide: true }, handler: serve })
  })
}

/** Whether a target names the prefix or a path below it, letter for letter. */
function isBelow(prefix: string, target: string): boolean {
  return target.startsWith(prefix) && ['/', '?', undefined].includes(target[prefix.length])
}

/** A fixed answer, or the end of the connection when an answer has begun. */
function endWithFault(response: ServerResponse): void {
  if (response.headersSent) return void response.destroy()
  response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' })
  response.end('Internal error\n')
}
