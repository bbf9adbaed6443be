import type { Texts } from '../../../base/language/texts.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { Routes } from '../../../http/route/route.ts'
import type { PasswordDeps } from '../../password/password.ts'
import { signIn } from '../../sign-in/outcome/sign-in.ts'
import { openSecondStep } from '../../sign-in/second-factor/factor-login.ts'
import { requestVerification, verifyByLink } from '../../user/password/email-verification.ts'
import {
  isResetLink,
  type LinkDeps,
  type PreparedReset,
  prepareReset,
  requestReset,
  resetByLink,
} from '../../user/password/password-reset.ts'
import { buildLinkInvalid } from '../../user/proof/proof-token.ts'
import { loadUser } from '../../user/user.ts'
import { PASSWORD_RULES } from '../frame/error-message.ts'
import type { RefusedForm } from '../frame/form.ts'
import { buildPage } from '../frame/page.ts'
import { definePage, refusePage, showProblem } from '../frame/page-route.ts'
import { HOME, redirectTo } from '../frame/page-url.ts'
import { defineUserPage } from '../frame/user-page.ts'
import {
  buildForgotPage,
  buildLinkSentPage,
  buildResetPage,
  buildVerifiedPage,
  buildVerifyPage,
} from '../password/password-page.ts'
import { ASK_TO_VERIFY } from '../sign-in/home-page.ts'
import { askForSecondStep } from '../sign-in/second-step-page.ts'
import { continueSignedIn, type SignInPageDeps } from '../sign-in/sign-in-goal.ts'

/** Dependencies of the pages of links by mail. */
export type LinkPageDeps = SignInPageDeps & LinkDeps & PasswordDeps

const FORGOT = '/auth/forgot'
const TOKEN_LIMIT = 200

/** The link to a new mail, after one that is not valid. */
const TO_NEW_LINK = { continuation: { href: FORGOT, label: 'problem.to-forgot' } } as const

/** A new password that breaks a rule, as the message of its field. Throws any other problem again. */
export function toPasswordError(texts: Texts, error: unknown): RefusedForm {
  if (!(error instanceof Problem) || error.code !== 'validation_failed') throw error
  const [broken] = error.errors ?? []
  const rule = PASSWORD_RULES[broken?.code ?? ''] ?? 'password.rule.other'
  return { problem: error, errors: [{ field: 'password', text: texts.say(rule) }] }
}

type PreparedResetPage = { prepared: PreparedReset } | RefusedForm

/** The pages of links by mail: a new password, and the proof of an address (docs/contract/pages.md#links-by-mail). */
export const linkPageRoutes: Routes<LinkPageDeps> = [
  definePage(
    { path: FORGOT, resource: 'forgot-page', summary: 'The form to ask for a new password', query: ['sent'] },
    async (deps: LinkPageDeps, { visitor, query }) =>
      buildPage({
        brand: deps.brand,
        ...(query.sent === '1' ? buildLinkSentPage(visitor) : buildForgotPage(deps, visitor)),
      }),
  ),
  definePage(
    {
      method: 'POST',
      path: FORGOT,
      resource: 'password',
      action: 'forgot',
      summary: 'Ask for a link to set a new password',
      fields: { email: 320 },
    },
    async (deps: LinkPageDeps, { db, visitor, form, now }) => {
      const email = form.email.trim()
      if (email === '') {
        const problem = new Problem('validation_failed', 'The e-mail address is empty.', { reason: 'empty_field' })
        const errors = [{ field: 'email', text: visitor.texts.say('forgot.email-missing') }]
        return refusePage(deps, { problem, page: buildForgotPage(deps, { ...visitor, errors }) })
      }
      const { result, userId } = await requestReset(deps, db, { email, texts: visitor.texts, now })
      return {
        ...redirectTo(`${FORGOT}?sent=1`),
        // Also for an unknown address, so that both cost the same.
        changed: [{ id: userId, account: null, url: null }],
        actor: { userId, sessionId: null, account: null },
        audit: { result },
      }
    },
  ),
  definePage(
    { path: '/auth/reset', resource: 'reset-page', summary: 'The form of a reset link', query: ['token'] },
    async (deps: LinkPageDeps, { db, visitor, query, requestId, now }) => {
      const token = query.token ?? ''
      if (!(await isResetLink(db, { token, now })))
        return showProblem(deps, buildLinkInvalid('page'), { requestId, visitor, ...TO_NEW_LINK })
      return buildPage({ brand: deps.brand, ...buildResetPage(deps, { ...visitor, token }) })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: '/auth/reset',
      resource: 'password',
      action: 'reset',
      summary: 'Set a new password by a link',
      fields: { token: TOKEN_LIMIT, password: 1024 },
    },
    {
      prepare: async (deps: LinkPageDeps, { db, visitor, form, now }): Promise<PreparedResetPage> => {
        try {
          return { prepared: await prepareReset(deps, db, { token: form.token, password: form.password, now }) }
        } catch (error) {
          return toPasswordError(visitor.texts, error)
        }
      },
      handle: async (deps, { db, visitor, form, prepared, address, userAgent, requestId, now }) => {
        const { token } = form
        if ('problem' in prepared) {
          const { problem, errors } = prepared
          return refusePage(deps, { problem, page: buildResetPage(deps, { ...visitor, token, errors }) })
        }
        const result = await resetByLink(db, { token, prepared: prepared.prepared, keepApiKeys: false, now })
        if ('problem' in result) return showProblem(deps, result.problem, { requestId, visitor, ...TO_NEW_LINK })
        const { userId, passwordHash } = result
        const goal = { target: undefined, next: `${HOME}?notice=password-set` }
        const changed = [{ id: userId, account: null, url: null }]
        const step = await openSecondStep(deps, db, { userId, passwordHash, address, now })
        if (step) {
          const page = await askForSecondStep(deps, db, {
            ...step,
            userId,
            goal,
            visitor,
            first: 'reset',
            address,
            now,
          })
          const shown = buildPage({ brand: deps.brand, ...page, cookies: deps.cookies.signOut() })
          return { ...shown, changed, actor: { userId, sessionId: null, account: null } }
        }
        const origin = { address, userAgent }
        const user = await loadUser(db, userId)
        const signedIn = await signIn(deps, db, {
          user,
          origin,
          amr: ['pwd'],
          isNewUser: false,
          redirectUrl: null,
          now,
        })
        if (!signedIn) return showProblem(deps, buildLinkInvalid('disabled'), { requestId, visitor, ...TO_NEW_LINK })
        return { ...(await continueSignedIn(deps, db, { visitor, goal, signedIn, now })), changed }
      },
    },
  ),
  definePage(
    { path: '/auth/verify', resource: 'verify-page', summary: 'The button of a verification link', query: ['token'] },
    async (deps: LinkPageDeps, { visitor, query }) =>
      buildPage({ brand: deps.brand, ...buildVerifyPage(deps, { ...visitor, token: query.token ?? '' }) }),
  ),
  definePage(
    {
      method: 'POST',
      path: '/auth/verify',
      resource: 'email',
      action: 'verify',
      summary: 'Verify an address by a link',
      fields: { token: TOKEN_LIMIT },
    },
    async (deps: LinkPageDeps, { db, visitor, form, requestId, now }) => {
      const result = await verifyByLink(db, { token: form.token, now })
      if ('problem' in result) return showProblem(deps, result.problem, { requestId, visitor })
      const { userId } = result
      return {
        ...buildPage({ brand: deps.brand, ...buildVerifiedPage(visitor) }),
        changed: [{ id: userId, account: null, url: null }],
        actor: { userId, sessionId: null, account: null },
      }
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: ASK_TO_VERIFY,
      resource: 'email',
      action: 'request-verification',
      returnTo: HOME,
      summary: 'Ask for a link that confirms the own address',
    },
    async (deps: LinkPageDeps, { db, user: signedIn, visitor, now }) => {
      const { userId } = signedIn
      const result = await requestVerification(deps, db, { userId, texts: visitor.texts, now })
      return {
        ...redirectTo(`${HOME}?notice=link-sent`),
        changed: [{ id: userId, account: null, url: null }],
        audit: { result },
      }
    },
  ),
]
