import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'

/** Runs `check` before each request to a route that is mounted meanwhile. What it throws is the answer. */
export function checkRoutes(
  server: FastifyInstance,
  check: (request: FastifyRequest, reply: FastifyReply) => void,
): () => void {
  let isMounting = true
  const checkRequest: onRequestHookHandler = (request, reply, done) => {
    try {
      check(request, reply)
    } catch (error) {
      return done(error as Error)
    }
    done()
  }
  server.addHook('onRoute', (route) => {
    if (isMounting) route.onRequest = [checkRequest].concat(route.onRequest ?? [])
  })
  return () => {
    isMounting = false
  }
}
