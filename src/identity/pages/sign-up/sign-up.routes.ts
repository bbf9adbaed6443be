import type { Texts } from '../../../base/language/texts.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { Routes } from '../../../http/route/route.ts'
import { isEmailAddress } from '../../../http/shape/formats.ts'
import {
  checkSignUpOpen,
  completeSignUp,
  findSignUp,
  type PreparedSignUp,
  prepareSignUp,
  requestSignUp,
  SIGN_UP_CONFIRM,
  type SignUpConfirmation,
  type SignUpDeps,
} from '../../sign-up/sign-up.ts'
import { buildLinkInvalid } from '../../user/proof/proof-token.ts'
import { checkName } from '../account/invitation.routes.ts'
import { toPasswordError } from '../account/link.routes.ts'
import type { RefusedForm } from '../frame/form.ts'
import { buildPage } from '../frame/page.ts'
import { definePage, refusePage, showProblem } from '../frame/page-route.ts'
import { buildFormUrl, buildGoalUrl, buildRefreshUrl, redirectTo, SIGN_UP } from '../frame/page-url.ts'
import {
  checkWeb,
  continueSignedIn,
  locate,
  readGoal,
  readKeptGoal,
  type SignInPageDeps,
} from '../sign-in/sign-in-goal.ts'
import { buildConfirmPage, buildSignUpPage, buildSignUpSentPage } from './sign-up-page.ts'

/** Dependencies of the pages of a sign-up. */
export type SignUpPageDeps = SignInPageDeps & SignUpDeps

type PreparedConfirmation = RefusedForm | { confirmation: SignUpConfirmation; prepared: PreparedSignUp }

const TOKEN_LIMIT = 200

/** The link to a new mail, after one that is not valid. */
const TO_NEW_LINK = { continuation: { href: SIGN_UP, label: 'problem.to-sign-up' } } as const

function buildEmailError(texts: Texts): RefusedForm {
  return {
    problem: new Problem('validation_failed', 'The form holds no e-mail address.', { reason: 'email' }),
    errors: [{ field: 'email', text: texts.say('sign-up.email-wrong') }],
  }
}

/** An address of another domain, as the message of its field. Throws any other problem again. */
function toDomainError(texts: Texts, error: unknown): RefusedForm {
  if (!(error instanceof Problem) || error.code !== 'validation_failed') throw error
  return { problem: error, errors: [{ field: 'email', text: texts.say('sign-up.domain') }] }
}

/** The pages of a sign-up with e-mail and password (docs/contract/pages.md#sign-up). */
export const signUpPageRoutes: Routes<SignUpPageDeps> = [
  definePage(
    {
      path: SIGN_UP,
      resource: 'sign-up-page',
      summary: 'The form to sign up',
      query: ['redirect_url', 'next', 'sent'],
    },
    async (deps: SignUpPageDeps, { visitor, query }) => {
      checkSignUpOpen(deps)
      const goal = readGoal(deps, query)
      checkWeb(goal)
      if (visitor.isRefreshable) return { kind: 'redirect', location: buildRefreshUrl(buildGoalUrl(SIGN_UP, goal)) }
      if (visitor.user) return { kind: 'redirect', location: locate(deps, goal) }
      const page = query.sent === '1' ? buildSignUpSentPage(visitor) : buildSignUpPage(deps, { ...visitor, goal })
      return buildPage({ brand: deps.brand, ...page })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: SIGN_UP,
      resource: 'sign-up',
      action: 'request',
      summary: 'Ask for a link to sign up with the form',
      fields: { email: 320, redirect_url: 4096, next: 4096 },
      againAt: (form) => buildFormUrl(SIGN_UP, form),
    },
    async (deps: SignUpPageDeps, { db, visitor, form, address, now }) => {
      checkSignUpOpen(deps)
      const goal = readGoal(deps, form)
      checkWeb(goal)
      const email = form.email.trim()
      const { texts, browserId } = visitor
      const browser = { id: browserId, isKnown: false, redirectUrl: goal.target?.url, next: goal.next }
      const request = { email, origin: { address, browser }, texts, now }
      const result = isEmailAddress(email)
        ? await requestSignUp(deps, db, request).catch((error: unknown) => toDomainError(texts, error))
        : buildEmailError(texts)
      if (typeof result !== 'string') {
        const { problem, errors } = result
        return refusePage(deps, { problem, page: buildSignUpPage(deps, { ...visitor, goal, email, errors }) })
      }
      return {
        ...redirectTo(`${SIGN_UP}?sent=1`),
        changed: [{ id: null, account: null, url: null }],
        audit: { result },
      }
    },
  ),
  definePage(
    {
      path: SIGN_UP_CONFIRM,
      resource: 'sign-up-page',
      action: 'confirm',
      summary: 'The form of the link of a sign-up',
      query: ['token'],
    },
    async (deps: SignUpPageDeps, { db, visitor, query, requestId, now }) => {
      const token = query.token ?? ''
      const found = await findSignUp(deps, db, { token, browserId: visitor.browserId, now })
      if (!found) return showProblem(deps, buildLinkInvalid('page'), { requestId, visitor, ...TO_NEW_LINK })
      const goal = readKeptGoal(deps, found.goal)
      return buildPage({
        brand: deps.brand,
        ...buildConfirmPage(deps, { ...visitor, email: found.email, token, goal }),
      })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: SIGN_UP_CONFIRM,
      resource: 'login',
      action: 'sign-up',
      summary: 'Sign up by the link of a mail with the form',
      fields: { token: TOKEN_LIMIT, username: 320, name: 200, password: 1024 },
    },
    {
      prepare: async (deps: SignUpPageDeps, request): Promise<PreparedConfirmation> => {
        const { db, visitor, form, address, userAgent, trace, now } = request
        const name = form.name.trim()
        const refused = checkName(visitor.texts, name)
        if (refused) return refused
        const { token, password } = form
        const origin = { address, userAgent }
        const { browserId } = visitor
        const confirmation = { token, password, name: name || null, origin, browserId, trace, now }
        try {
          return { confirmation, prepared: await prepareSignUp(deps, db, confirmation) }
        } catch (error) {
          return toPasswordError(visitor.texts, error)
        }
      },
      handle: async (deps, { db, visitor, form, prepared, requestId, now }) => {
        const { token, name } = form
        if ('problem' in prepared) {
          const { problem, errors } = prepared
          const found = await findSignUp(deps, db, { token, browserId: visitor.browserId, now })
          if (!found) return showProblem(deps, buildLinkInvalid('page'), { requestId, visitor, ...TO_NEW_LINK })
          const view = { ...visitor, token, name, errors, email: found.email, goal: readKeptGoal(deps, found.goal) }
          return refusePage(deps, { problem, page: buildConfirmPage(deps, view) })
        }
        const result = await completeSignUp(deps, db, prepared)
        if ('problem' in result) return showProblem(deps, result.problem, { requestId, visitor, ...TO_NEW_LINK })
        const { user, issued } = result
        const signedIn = { user, issued, isNewUser: true, redirectUrl: null }
        const goal = readKeptGoal(deps, result.goal)
        return continueSignedIn(deps, db, { visitor, goal, signedIn, now })
      },
    },
  ),
]
