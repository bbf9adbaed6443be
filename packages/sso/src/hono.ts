import type { Sso } from './sso.ts'

/** The part of Hono's `Context` that is used; declared here so that there is no dependency. */
export type HonoContext = { readonly req: { readonly raw: Request } }

/** Hono middleware: `app.use(receiveHandshake(sso))`. Put it before everything that needs a session. */
export function receiveHandshake(
  sso: Sso,
): (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined> {
  return async (context, next) => {
    const answer = await sso.handle(context.req.raw)
    if (answer) return answer
    await next()
    return undefined
  }
}

/** The handler of a sign-out: `app.post('/sign-out', signOut(sso))`. */
export function signOut(sso: Sso, next?: string): (context: HonoContext) => Promise<Response> {
  return (context) => sso.signOut(context.req.raw, next)
}
