import { type NodeRequest, type NodeResponse, respond, toWebRequest } from './node-request.ts'
import type { Sso } from './sso.ts'

type Handler = (request: NodeRequest, response: NodeResponse, next: (error?: unknown) => void) => Promise<void>

/** Express (or Connect) middleware: `app.use(receiveHandshake(sso))`. Put it before everything that needs a session. */
export function receiveHandshake(sso: Sso): Handler {
  return async (request, response, next) => {
    const web = toWebRequest(request, sso.origin)
    const answer = web && (await sso.handle(web))
    if (answer) await respond(response, answer)
    else next()
  }
}

/** The handler of a sign-out: `app.post('/sign-out', signOut(sso))`. */
export function signOut(sso: Sso, next?: string): Handler {
  return async (request, response, proceed) => {
    const web = toWebRequest(request, sso.origin)
    if (web) await respond(response, await sso.signOut(web, next))
    else proceed()
  }
}

/** The session JWT of an Express request; undefined without one. */
export function readToken(sso: Sso, request: NodeRequest): string | undefined {
  const web = toWebRequest(request, sso.origin)
  return web && sso.readToken(web)
}
