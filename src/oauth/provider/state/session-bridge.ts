import type { KoaContextWithOIDC } from 'oidc-provider'
import type { SessionId, UserId } from '../../../base/id.ts'
import { type BrowserPerson, findRequestState } from './request-state.ts'
import { type ReadDeps, readPerson } from './state-reader.ts'

/** Finds the person of a `Cookie` header, and its session. */
export type FindPerson = (
  cookieHeader: string | undefined,
) => Promise<{ userId: UserId; sessionId: SessionId } | undefined>

/** The session of the provider, with the session of the browser that it follows. */
interface FollowingSession {
  accountId?: string
  loginTs?: number
  browserSession?: string
  loginAccount(details: { accountId: string; loginTs: number; amr: string[]; acr?: string }): void
}

/** The model of these sessions. */
export interface SessionModel {
  get(ctx: KoaContextWithOIDC): Promise<FollowingSession>
  instantiate(payload: object): FollowingSession
  IN_PAYLOAD: readonly string[]
  prototype: { exp?: number; persist(this: { exp?: number }): Promise<unknown> }
}

/** The routes where nobody is signed in when the browser is not. Sign-out still has to find the session of the provider. */
const SIGN_IN_ROUTES = new Set(['authorization', 'resume', 'code_verification', 'device_resume'])

/**
 * Finds the session of the provider for a request, so that it follows the session of the browser: a person who is signed in
 * here is signed in there, and who signs out or changes the account here is not the person of the next authorization. So
 * there is one sign-in page, and one place where a session ends (docs/contract/oauth.md#sign-in).
 */
export async function visitSession(
  model: SessionModel,
  getOwn: SessionModel['get'],
  deps: ReadDeps & { findPerson: FindPerson },
  ctx: KoaContextWithOIDC,
): Promise<FollowingSession> {
  // Sign-out reads the session of the provider as it is.
  if (!SIGN_IN_ROUTES.has(ctx.oidc.route)) return getOwn(ctx)
  await expectBrowser(deps, ctx)
  const found = await getOwn(ctx)
  const session = follow(model, found, await readPerson(deps, ctx))
  if (session !== found) ctx.oidc.entity('Session', session)
  return session
}

/** Tells the reads of this request which browser it comes from. */
async function expectBrowser({ findPerson }: { findPerson: FindPerson }, ctx: KoaContextWithOIDC): Promise<void> {
  const state = findRequestState(ctx)
  const person = await findPerson(ctx.req.headers.cookie)
  const { client_id: clientId } = ctx.query
  if (state && person) state.browser = { ...person, clientId: typeof clientId === 'string' ? clientId : undefined }
}

function follow(model: SessionModel, found: FollowingSession, person: BrowserPerson | undefined): FollowingSession {
  if (!person) return found.accountId === undefined ? found : model.instantiate({})
  const isOther = found.accountId !== undefined && found.accountId !== person.userId
  const session = isOther || found.accountId === undefined ? model.instantiate({}) : found
  if (session.browserSession === person.sessionId) return session
  const { userId, sessionId, amr, acr, authTime } = person
  session.loginAccount({
    accountId: userId,
    loginTs: Math.floor(authTime.getTime() / 1000),
    amr: [...amr],
    ...(acr !== null && { acr }),
  })
  session.browserSession = sessionId
  return session
}
