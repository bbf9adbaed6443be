import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { SessionId, UserId } from '../../id.ts'

/** Who is signed in in a browser, and how. */
export interface BrowserPerson {
  userId: UserId
  sessionId: SessionId
  amr: readonly string[]
  acr: string | null
  authTime: Date
}

/** Finds the person of a `Cookie` header. */
export type FindPerson = (cookieHeader: string | undefined) => Promise<BrowserPerson | undefined>

/** The session of the provider, with the session of the browser that it follows. */
interface FollowingSession {
  accountId?: string
  loginTs?: number
  browserSession?: string
  loginAccount(details: { accountId: string; loginTs: number; amr: string[]; acr?: string }): void
}

interface SessionModel {
  get(ctx: KoaContextWithOIDC): Promise<FollowingSession>
  instantiate(payload: object): FollowingSession
  IN_PAYLOAD: readonly string[]
}

/** The routes where nobody is signed in when the browser is not. Sign-out still has to find the session of the provider. */
const SIGN_IN_ROUTES = new Set(['authorization', 'resume', 'code_verification', 'device_resume'])

/**
 * Makes the sessions of the provider follow the session of the browser: a person who is signed in here is signed in there,
 * and who signs out or changes the account here is not the person of the next authorization. So there is one sign-in page,
 * and one place where a session ends (docs/contract/oauth.md#sign-in).
 */
export function followBrowserSession(provider: Provider, findPerson: FindPerson): void {
  const model = provider.Session as unknown as SessionModel
  const members = [...model.IN_PAYLOAD, 'browserSession']
  Object.defineProperty(model, 'IN_PAYLOAD', { get: () => members })
  const getOwn = model.get.bind(model)
  model.get = async (ctx) => {
    const found = await getOwn(ctx)
    const person = await findPerson(ctx.req.headers.cookie)
    const session = follow(model, found, { person, route: ctx.oidc.route })
    if (session !== found) ctx.oidc.entity('Session', session)
    return session
  }
}

function follow(
  model: SessionModel,
  found: FollowingSession,
  { person, route }: { person: BrowserPerson | undefined; route: string },
): FollowingSession {
  if (!person) return found.accountId !== undefined && SIGN_IN_ROUTES.has(route) ? model.instantiate({}) : found
  if (!SIGN_IN_ROUTES.has(route)) return found
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
