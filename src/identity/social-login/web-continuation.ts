import type { AnswerCookie } from '../../http/route/outcome.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { SignIn } from '../sign-in/outcome/sign-in.ts'
import type { OpenTarget } from '../sso/handshake.ts'
import type { LoginFlow } from './flow/login-flow.store.ts'

/** Parts of the pages and of the handshake that a sign-in in a browser needs. */
export interface ContinuationDeps {
  /** The cookies of the browser session (docs/contract/pages.md#cookies). */
  keepInBrowser: (
    tokens: { jwt: string; expiresInSeconds: number; refreshToken: string },
    signIn: { email: string; now: Date },
  ) => AnswerCookie[]
  /** The URL with a handshake token for a target on another domain (docs/contract/sso.md#handshake); else undefined. */
  openTarget: OpenTarget
}

/** Next address of a browser, with its cookies. */
export interface Continuation {
  url: string
  cookies: AnswerCookie[]
}

/** Continues after a sign-in (docs/contract/social-login.md#web-continuation): only in the browser that began it. */
export async function continueOnWeb(
  deps: ContinuationDeps,
  db: Database,
  input: { flow: LoginFlow; signIn: SignIn; now: Date },
): Promise<Continuation> {
  const { flow, signIn, now } = input
  if (!flow.isBound) return { url: flow.redirectUrl, cookies: [] }
  const { sessionId, jwt, expiresInSeconds, refreshToken } = signIn.issued
  const target = await deps.openTarget(db, {
    userId: signIn.user.id,
    sessionId,
    isNew: true,
    targetUrl: flow.redirectUrl,
    now,
  })
  const { email } = signIn.user
  const cookies = deps.keepInBrowser({ jwt, expiresInSeconds, refreshToken }, { email, now })
  return { url: target ?? flow.redirectUrl, cookies }
}
