import type { KoaContextWithOIDC } from 'oidc-provider'
import type { Clock } from '../../base/clock.ts'
import { writeCookie } from '../../http/route/answer.ts'
import type { AnswerCookie } from '../../http/route/outcome.ts'
import type { FlowCookies } from '../../identity/pages/browser/flow-cookie.ts'

/** Lifetime of a question to the user of an authorization, and of its cookie. */
export const INTERACTION_SECONDS = 1800

/** The name under which the library asks for the question of a browser that continues. */
export const RESUME_COOKIE = 'resume'

/** Dependencies of the cookies of interactions. */
export interface InteractionCookieDeps {
  flowCookies: FlowCookies
  machineClock: Clock
}

/**
 * Gives the library the cookies of flows in place of its own two for each interaction: it keeps nothing else in the
 * cookies of a context. It sets them for a new question, reads the question that a browser continues, whose id is in the
 * path, and removes the cookie of a question that has ended.
 */
export function bindInteraction({ flowCookies, machineClock }: InteractionCookieDeps, ctx: KoaContextWithOIDC): void {
  const header = ctx.req.headers.cookie
  const findId = () => (ctx as { params?: { uid?: string } }).params?.uid
  const add = (cookies: readonly AnswerCookie[]) => {
    for (const cookie of cookies) ctx.append('set-cookie', writeCookie(cookie))
  }
  const cookies = {
    get: (name: string) => (name === RESUME_COOKIE && flowCookies.isOwn(header, findId()) ? findId() : undefined),
    set: (name: string, id: string | null) => {
      if (name !== RESUME_COOKIE) return
      if (id === null) return add(flowCookies.end(header, findId()))
      const now = new Date(machineClock.now())
      add(flowCookies.begin(header, { id, lifetimeSeconds: INTERACTION_SECONDS, now, continues: findId() }))
    },
  }
  Object.assign(ctx, { cookies })
}
