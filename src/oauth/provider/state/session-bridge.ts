import type { KoaContextWithOIDC } from 'oidc-provider'
import type { SessionId, UserId } from '../../../base/id.ts'
import { type BrowserUser, findRequestState } from './request-state.ts'
import { type ReadDeps, readUser } from './state-reader.ts'

/** Finds the user of a `Cookie` header, and its session. */
export type FindUser = (
  cookieHeader: string | undefined,
) => Promise<{ userId: UserId; sessionId: SessionId } | undefined>

/** The session of the provider, with the session of the browser that it follows. */
interface FollowingSession {
  accountId?: string
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

/** The routes without a user when the browser has none. Sign-out must still find the session of the provider. */
const SIGN_IN_ROUTES = new Set(['authorization', 'resume', 'code_verification', 'device_resume'])

/**
 * Finds the session of the provider for a request, so that it follows the session of the browser: a user signed in here
 * is signed in there, and a sign-out or a switch of user here applies to the next authorization. So there is one
 * sign-in page, and one end of a session (docs/contract/oauth.md#sign-in).
 */
export async function visitSession(
  model: SessionModel,
  getOwn: SessionModel['get'],
  deps: ReadDeps & { findUser: FindUser },
  ctx: KoaContextWithOIDC,
): Promise<FollowingSession> {
  // Sign-out reads the stored session of the provider.
  if (!SIGN_IN_ROUTES.has(ctx.oidc.route)) return getOwn(ctx)
  await expectBrowser(deps, ctx)
  const found = await getOwn(ctx)
  const session = follow(model, found, await readUser(deps, ctx))
  if (session !== found) ctx.oidc.entity('Session', session)
  return session
}

/** Passes the browser of this request to its reads. */
async function expectBrowser({ findUser }: { findUser: FindUser }, ctx: KoaContextWithOIDC): Promise<void> {
  const state = findRequestState(ctx)
  const user = await findUser(ctx.req.headers.cookie)
  const { client_id: clientId } = ctx.query
  if (state && user) state.browser = { ...user, clientId: typeof clientId === 'string' ? clientId : undefined }
}

function follow(model: SessionModel, found: FollowingSession, user: BrowserUser | undefined): FollowingSession {
  if (!user) return found.accountId === undefined ? found : model.instantiate({})
  const session = found.accountId === user.userId ? found : model.instantiate({})
  if (session.browserSession === user.sessionId) return session
  const { userId, sessionId, amr, acr, authTime } = user
  session.loginAccount({
    accountId: userId,
    loginTs: Math.floor(authTime.getTime() / 1000),
    amr: [...amr],
    ...(acr !== null && { acr }),
  })
  session.browserSession = sessionId
  return session
}
