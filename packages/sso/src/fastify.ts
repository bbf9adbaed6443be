import { listHeaders, type NodeRequest, toWebRequest } from './node-request.ts'
import type { Sso } from './sso.ts'

/** The part of a Fastify request that is used. */
export type FastifyRequestLike = { readonly raw: NodeRequest }

/** The part of a Fastify reply that is used. */
export type FastifyReplyLike = {
  code(status: number): FastifyReplyLike
  header(name: string, value: string | string[]): FastifyReplyLike
  send(body?: unknown): unknown
}

type Handler = (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown>

/** The part of a Fastify instance that is used; declared here so that there is no dependency. */
export type FastifyScope = { addHook(name: 'onRequest', hook: Handler): unknown }

/**
 * A Fastify plugin: `app.register(receiveHandshake(sso))`. Its hook runs before the routes of the scope that registers it.
 */
export function receiveHandshake(sso: Sso): (scope: FastifyScope) => Promise<void> {
  const plugin = async (scope: FastifyScope) => {
    scope.addHook('onRequest', async (request, reply) => {
      const web = toWebRequest(request.raw, sso.origin)
      const answer = web && (await sso.handle(web))
      return answer && sendAnswer(reply, answer)
    })
  }
  // Without it Fastify would keep the hook to a scope of the plugin's own, which has no routes.
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true })
}

/** The handler of a sign-out: `app.post('/sign-out', signOut(sso))`. */
export function signOut(sso: Sso, next?: string): Handler {
  return async (request, reply) => {
    const web = toWebRequest(request.raw, sso.origin)
    return web ? sendAnswer(reply, await sso.signOut(web, next)) : reply.code(400).send()
  }
}

/** The session JWT of a Fastify request; undefined without one. */
export function readToken(sso: Sso, request: FastifyRequestLike): string | undefined {
  const web = toWebRequest(request.raw, sso.origin)
  return web && sso.readToken(web)
}

async function sendAnswer(reply: FastifyReplyLike, answer: Response): Promise<unknown> {
  const body = await answer.text()
  for (const [name, value] of listHeaders(answer)) reply.header(name, value)
  return reply.code(answer.status).send(body === '' ? undefined : body)
}
