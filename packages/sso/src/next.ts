import type { Sso } from './sso.ts'

/**
 * A Next.js proxy (`proxy.ts`, before Next 16 `middleware.ts`): `export const proxy = receiveHandshake(sso)`. Other
 * requests continue. In a proxy of your own: `return (await receiveHandshake(sso)(request)) ?? NextResponse.next()`.
 */
export function receiveHandshake(sso: Sso): (request: Request) => Promise<Response | undefined> {
  return (request) => sso.handle(request)
}

/** A route handler for the sign-out (App Router): `export const POST = signOut(sso)` in `app/sign-out/route.ts`. */
export function signOut(sso: Sso, next?: string): (request: Request) => Promise<Response> {
  return (request) => sso.signOut(request, next)
}
