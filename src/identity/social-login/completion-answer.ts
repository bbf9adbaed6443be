import type { Texts } from '../../base/language/texts.ts'
import type { AnswerCookie } from '../../http/route/outcome.ts'
import type { RedirectOutcome, RefusalOutcome } from '../../http/route/route.ts'
import type { Brand } from '../pages/brand/brand.ts'
import { buildPage } from '../pages/frame/page.ts'
import { describeProblem, renderError } from '../pages/frame/problem-page.ts'
import { CLEAN_ADDRESS } from '../pages/script/page-script.ts'
import { NO_STORE } from '../session/session.routes.ts'
import type { SignIn } from '../sign-in/outcome/sign-in.ts'
import { describeWayBack } from './bridge-page.ts'
import type { Completion } from './completion.ts'
import type { LoginFlow } from './flow/login-flow.store.ts'
import { buildRefusal, toErrorParameter } from './refusal-problem.ts'

/** `url` with these parameters in its query, in place of any of the same name. */
export function addToQuery(url: string, parameters: Readonly<Record<string, string>>): string {
  const target = new URL(url)
  for (const [name, value] of Object.entries(parameters)) target.searchParams.set(name, value)
  return target.href
}

/** The headers of a redirect that carries tokens or a code. */
const SECRET_HEADERS = { ...NO_STORE, 'referrer-policy': 'no-referrer' }

/** The redirect to a deep link with the tokens of a session (docs/contract/social-login.md#deep-links). */
export function redirectWithTokens(flow: LoginFlow, { issued, user, isNewUser }: SignIn): RedirectOutcome {
  const location = addToQuery(flow.redirectUrl, {
    access_token: issued.jwt,
    refresh_token: issued.refreshToken,
    token_type: 'Bearer',
    expires_in: String(issued.expiresInSeconds),
    is_new_user: String(isNewUser),
  })
  const account = issued.account?.id ?? null
  return {
    kind: 'redirect',
    location,
    headers: SECRET_HEADERS,
    changed: [{ id: issued.sessionId, account: null }],
    actor: { userId: user.id, sessionId: issued.sessionId, account },
    audit: { provider: flow.provider, is_new_user: isNewUser },
  }
}

/** The redirect with a one-time code. It opens no session yet, so that it records no event. */
export function redirectWithCode(completion: Extract<Completion, { kind: 'code' }>): RedirectOutcome {
  const { flow, parameter, code, userId } = completion
  return {
    kind: 'redirect',
    location: addToQuery(flow.redirectUrl, { [parameter]: code }),
    headers: SECRET_HEADERS,
    changed: [],
    actor: { userId, sessionId: null, account: null },
    audit: { provider: flow.provider, issued: parameter },
  }
}

/** The redirect of a browser whose session a connection has proven. It opens nothing, and carries nothing. */
export function redirectProven({
  flow,
  userId,
  sessionId,
  account,
}: Extract<Completion, { kind: 'proven' }>): RedirectOutcome {
  return {
    kind: 'redirect',
    location: flow.redirectUrl,
    headers: NO_STORE,
    changed: [],
    actor: { userId, sessionId, account },
    audit: { provider: flow.provider, issued: 'session_proof' },
  }
}

/** The redirect of a browser that continues on the web. */
export function redirectOnWeb(
  flow: LoginFlow,
  { issued, user, isNewUser }: SignIn,
  continuation: { url: string; cookies: AnswerCookie[] },
): RedirectOutcome {
  return {
    kind: 'redirect',
    location: continuation.url,
    cookies: continuation.cookies,
    headers: SECRET_HEADERS,
    changed: [{ id: issued.sessionId, account: null }],
    actor: { userId: user.id, sessionId: issued.sessionId, account: issued.account?.id ?? null },
    audit: { provider: flow.provider, is_new_user: isNewUser },
  }
}

/** The answer to a refused sign-in (docs/contract/social-login.md#failures): a deep link, a page, or the problem. */
export function refuseSignIn(
  refused: Extract<Completion, { kind: 'refused' }>,
  facts: { provider: string; brand: Brand; texts: Texts; requestId: string; wantsPage: boolean },
): RefusalOutcome {
  const { flow, reason, detail, userId } = refused
  const problem = buildRefusal(reason, detail)
  const outcome: RefusalOutcome = {
    kind: 'refusal',
    problem,
    actor: { userId, sessionId: null, account: null },
    audit: { provider: facts.provider },
  }
  if (flow && (flow.isDeepLink || flow.linkTo !== null)) {
    const error = { error: toErrorParameter(reason, problem), error_description: problem.detail }
    return {
      ...outcome,
      instead: { location: addToQuery(flow.redirectUrl, error), status: 302 },
      headers: SECRET_HEADERS,
    }
  }
  if (!facts.wantsPage) return outcome
  const { requestId, texts } = facts
  // A retry would fail again, so the page offers none.
  const continuation = reason === 'disabled' ? null : describeWayBack(flow)
  const shown = renderError({ ...describeProblem(problem), requestId, texts, continuation })
  const page = buildPage({ brand: facts.brand, ...shown, scripts: [CLEAN_ADDRESS] })
  return { ...outcome, instead: { html: page.html }, ...(page.headers && { headers: page.headers }) }
}
