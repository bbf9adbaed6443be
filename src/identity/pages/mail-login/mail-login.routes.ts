import { Problem } from '../../../http/problem/problem.ts'
import type { Routes } from '../../../http/route/route.ts'
import {
  type CheckedMailLogin,
  checkMailLogin,
  checkMailLoginOn,
  findMailLinkGoal,
  logInByMail,
  MAIL_LOGIN_LINK,
  type MailLogin,
  type MailLoginDeps,
  requestMailLogin,
} from '../../sign-in/by-mail/mail-login.ts'
import type { FormError } from '../frame/form.ts'
import { buildPage, type PageBody } from '../frame/page.ts'
import { definePage, type PageAnswer, type PageRequest, refusePage } from '../frame/page-route.ts'
import {
  buildFormUrl,
  buildGoalUrl,
  buildRefreshUrl,
  buildSignInUrl,
  MAIL_LOGIN,
  redirectTo,
} from '../frame/page-url.ts'
import { renderError } from '../frame/problem-page.ts'
import { describeLoginProblem } from '../sign-in/login-message.ts'
import { buildCodeMissing } from '../sign-in/second-step.routes.ts'
import { askForSecondStep } from '../sign-in/second-step-page.ts'
import { checkWeb, continueSignedIn, readGoal, readKeptGoal, type SignInPageDeps } from '../sign-in/sign-in-goal.ts'
import { buildMailCodePage, buildMailLinkPage, buildMailLoginPage, MAIL_LOGIN_CODE } from './mail-login-page.ts'

/** Dependencies of the pages of a sign-in by mail. */
export type MailLoginPageDeps = SignInPageDeps & MailLoginDeps

const TOKEN_LIMIT = 200

type Request = PageRequest<string, string, unknown>

const OF_PAGE = { resource: 'mail-login-page' } as const
const OF_LOGIN = { method: 'POST', resource: 'login', action: 'mail' } as const

interface Attempt {
  login: MailLogin
  checked: CheckedMailLogin
}

async function prepare(deps: MailLoginPageDeps, request: Request, by: MailLogin['by']): Promise<Attempt> {
  const { db, visitor, address, userAgent, now } = request
  const login = { by, browserId: visitor.browserId, origin: { address, userAgent }, now }
  return { login, checked: await checkMailLogin(deps, db, login) }
}

/** Signs the browser in, asks for the second step, or shows the refusal. */
async function finish(
  deps: MailLoginPageDeps,
  { db, visitor, address, now }: Request,
  attempt: Attempt,
  showRefusal: (problem: Problem) => Promise<PageBody>,
): Promise<PageAnswer> {
  const result = await logInByMail(deps, db, attempt)
  const goal = readKeptGoal(deps, result.goal ?? {})
  if (!('problem' in result)) return continueSignedIn(deps, db, { visitor, goal, signedIn: result, now })
  const { problem, userId, secondStep } = result
  const actor = { userId, sessionId: null, account: null }
  const page = secondStep
    ? await askForSecondStep(deps, db, { ...secondStep, userId, goal, visitor, first: 'mail', address, now })
    : await showRefusal(problem)
  return refusePage(deps, { problem, page, target: userId, actor })
}

/** The pages of a sign-in by mail (docs/contract/pages.md#sign-in-by-mail). */
export const mailLoginPageRoutes: Routes<MailLoginPageDeps> = [
  definePage(
    { ...OF_PAGE, path: MAIL_LOGIN, summary: 'The form to ask for a mail to sign in', query: ['redirect_url', 'next'] },
    async (deps: MailLoginPageDeps, { visitor, query }) => {
      checkMailLoginOn(deps)
      const goal = readGoal(deps, query)
      checkWeb(goal)
      // A user who is signed in may be here for a fresh sign-in, which replaces the session of the browser.
      if (visitor.isRefreshable) return { kind: 'redirect', location: buildRefreshUrl(buildGoalUrl(MAIL_LOGIN, goal)) }
      return buildPage({ brand: deps.brand, ...buildMailLoginPage(deps, { ...visitor, goal }) })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: MAIL_LOGIN,
      resource: 'mail-login',
      action: 'request',
      summary: 'Ask for a mail to sign in with the form',
      fields: { email: 320, redirect_url: 4096, next: 4096 },
      againAt: (form, isSameUser) => buildFormUrl(isSameUser(form.email.trim()) ? '/auth/sign-in' : MAIL_LOGIN, form),
    },
    async (deps: MailLoginPageDeps, { db, visitor, form, address, now }) => {
      checkMailLoginOn(deps)
      const goal = readGoal(deps, form)
      checkWeb(goal)
      const { texts, browserId: id } = visitor
      const email = form.email.trim()
      if (email === '') {
        const problem = new Problem('validation_failed', 'The e-mail address is empty.', { reason: 'empty_field' })
        const errors = [{ field: 'email', text: texts.say('forgot.email-missing') }]
        return refusePage(deps, { problem, page: buildMailLoginPage(deps, { ...visitor, goal, errors }) })
      }
      const isKnown = deps.browserKeys.findKnownBrowser(id, { email, now }) !== undefined
      const browser = { id, isKnown, redirectUrl: goal.target?.url, next: goal.next }
      const asked = { email, origin: { address, browser }, texts, now }
      const { login, result, userId } = await requestMailLogin(deps, db, asked)
      return {
        ...redirectTo(buildGoalUrl(MAIL_LOGIN_CODE, { ...goal, login })),
        // Also for an unknown address, so that both cost the same.
        changed: [{ id: userId, account: null, url: null }],
        actor: { userId, sessionId: null, account: null },
        audit: { result },
      }
    },
  ),
  definePage(
    {
      ...OF_PAGE,
      path: MAIL_LOGIN_CODE,
      action: 'code',
      summary: 'The form of the code of a mail',
      query: ['login', 'redirect_url', 'next'],
    },
    async (deps: MailLoginPageDeps, request) => {
      checkMailLoginOn(deps)
      const { login = '', ...given } = request.query
      const goal = readGoal(deps, given)
      checkWeb(goal)
      return buildPage({ brand: deps.brand, ...buildMailCodePage(deps, { ...request.visitor, goal, login }) })
    },
  ),
  definePage(
    {
      ...OF_LOGIN,
      path: MAIL_LOGIN_CODE,
      summary: 'Sign in with the code of a mail in the form',
      fields: { login: TOKEN_LIMIT, code: 64, redirect_url: 4096, next: 4096 },
      againAt: ({ redirect_url, next }) => buildSignInUrl({ redirect_url, next }),
    },
    {
      prepare: async (deps: MailLoginPageDeps, request): Promise<Attempt | undefined> => {
        checkMailLoginOn(deps)
        const { login, code } = request.form
        return code.trim() === '' ? undefined : prepare(deps, request, { kind: 'code', login, code })
      },
      handle: async (deps, request) => {
        const { visitor, form, prepared } = request
        const { login } = form
        const show = async (errors: FormError[]) => {
          const goal = readKeptGoal(deps, { redirectUrl: form.redirect_url, next: form.next })
          return buildMailCodePage(deps, { ...visitor, goal, login, errors })
        }
        if (!prepared) {
          const { problem, errors } = buildCodeMissing(visitor.texts)
          return refusePage(deps, { problem, page: await show(errors) })
        }
        return finish(deps, request, prepared, (problem) =>
          show([{ text: describeLoginProblem(visitor.texts, problem, 'mail-login.failed') }]),
        )
      },
    },
  ),
  definePage(
    {
      ...OF_PAGE,
      path: MAIL_LOGIN_LINK,
      action: 'link',
      summary: 'The button of the link of a mail to sign in',
      query: ['token'],
    },
    async (deps: MailLoginPageDeps, request) => {
      checkMailLoginOn(deps)
      const { token = '' } = request.query
      const { db, visitor, now } = request
      const kept = await findMailLinkGoal(db, { token, browserId: visitor.browserId, now })
      const goal = readKeptGoal(deps, kept)
      return buildPage({ brand: deps.brand, ...buildMailLinkPage(deps, { ...request.visitor, goal, token }) })
    },
  ),
  definePage(
    {
      ...OF_LOGIN,
      path: MAIL_LOGIN_LINK,
      summary: 'Sign in by the link of a mail with the form',
      fields: { token: TOKEN_LIMIT },
    },
    {
      prepare: (deps: MailLoginPageDeps, request) =>
        prepare(deps, request, { kind: 'link', token: request.form.token }),
      handle: async (deps, request) => {
        const { prepared, requestId, visitor } = request
        const continuation = { href: MAIL_LOGIN, label: 'problem.to-mail-login' } as const
        return finish(deps, request, prepared, async ({ code }) =>
          renderError({ code, cause: 'mail_login', requestId, texts: visitor.texts, continuation }),
        )
      },
    },
  ),
]
