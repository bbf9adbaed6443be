import type { TextKey, Texts } from '../../../base/language/texts.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { Routes } from '../../../http/route/route.ts'
import type { PasswordDeps } from '../../password/password.ts'
import { type CheckedLogin, checkLocalLogin, type LocalLogin, logInLocally } from '../../sign-in/local/local-login.ts'
import { foldEmail } from '../../user-record/email-key.ts'
import type { FormError } from '../frame/form.ts'
import { findNotice } from '../frame/notice.ts'
import { buildPage } from '../frame/page.ts'
import { definePage, refusePage } from '../frame/page-route.ts'
import { buildRefreshUrl, buildSignInUrl } from '../frame/page-url.ts'
import { describeLoginProblem } from './login-message.ts'
import { askForSecondStep } from './second-step-page.ts'
import { checkWeb, continueSignedIn, type Goal, locate, readGoal, type SignInPageDeps } from './sign-in-goal.ts'
import { buildSignInPage } from './sign-in-page.ts'

type PasswordPageDeps = SignInPageDeps & PasswordDeps

const NOTICES: Readonly<Record<string, TextKey>> = {
  'signed-out': 'sign-in.signed-out',
  'session-ended': 'sign-in.session-ended',
  deleted: 'sign-in.deleted',
}

type PreparedSignIn = { goal: Goal } & ({ errors: FormError[] } | { login: LocalLogin; checked: CheckedLogin })

function findEmptyFields(texts: Texts, { email, password }: { email: string; password: string }): FormError[] {
  return [
    ...(email.trim() === '' ? [{ field: 'email', text: texts.say('sign-in.email-missing') }] : []),
    ...(password === '' ? [{ field: 'password', text: texts.say('sign-in.password-missing') }] : []),
  ]
}

/** The sign-in page (docs/contract/pages.md#sign-in-page). */
export const signInPageRoutes: Routes<PasswordPageDeps> = [
  definePage(
    {
      path: '/auth/sign-in',
      resource: 'sign-in-page',
      summary: 'The form to sign in',
      query: ['redirect_url', 'next', 'notice', 'again'],
    },
    async (deps: SignInPageDeps, { db, visitor, query, cookieHeader, now }) => {
      const goal = readGoal(deps, query)
      if (visitor.isRefreshable) return { kind: 'redirect', location: buildRefreshUrl(buildSignInUrl(query)) }
      if (visitor.user && goal.target?.kind !== 'deep-link' && query.again !== '1')
        return { kind: 'redirect', location: locate(deps, goal) }
      const notice = findNotice(visitor.texts, NOTICES, query.notice)
      const page = await buildSignInPage(deps, db, { goal, visitor, cookieHeader, now, notice })
      return buildPage({ brand: deps.brand, ...page })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: '/auth/sign-in',
      resource: 'login',
      action: 'local',
      needsAdmission: true,
      summary: 'Sign in with the form',
      fields: { email: 320, password: 1024, redirect_url: 4096, next: 4096 },
      // Who signed in as this user continues; who types another one is asked again.
      againAt: ({ email, redirect_url, next }, isSameUser) =>
        buildSignInUrl({ redirect_url, next, ...(!isSameUser(email.trim()) && { again: '1' }) }),
    },
    {
      prepare: async (
        deps: PasswordPageDeps,
        { db, visitor, form, address, userAgent, now },
      ): Promise<PreparedSignIn> => {
        const goal = readGoal(deps, form)
        checkWeb(goal)
        const errors = findEmptyFields(visitor.texts, form)
        if (errors.length > 0) return { goal, errors }
        const login = { email: form.email.trim(), password: form.password, address, userAgent, now }
        return { goal, login, checked: await checkLocalLogin(deps, db, login) }
      },
      handle: async (deps, { db, form, visitor, cookieHeader, address, now, prepared }) => {
        const { goal } = prepared
        const email = form.email.trim()
        const showForm = (errors: FormError[]) =>
          buildSignInPage(deps, db, { goal, visitor, cookieHeader, now, email, errors })
        if ('errors' in prepared) {
          const problem = new Problem('validation_failed', 'A field of the form is empty.', { reason: 'empty_field' })
          return refusePage(deps, { problem, page: await showForm(prepared.errors) })
        }
        const result = await logInLocally(deps, db, prepared)
        if (!('problem' in result)) return continueSignedIn(deps, db, { visitor, goal, signedIn: result, now })
        const { problem, userId, secondStep } = result
        const actor = { userId, sessionId: null, account: null }
        const page = secondStep
          ? await askForSecondStep(deps, db, { ...secondStep, userId, goal, visitor, address, now })
          : await showForm([{ text: describeLoginProblem(visitor.texts, problem) }])
        return refusePage(deps, { problem, page, target: userId, actor, subject: foldEmail(email) })
      },
    },
  ),
]
