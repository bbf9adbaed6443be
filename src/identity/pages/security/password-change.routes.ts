import type { Texts } from '../../../base/language/texts.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { RefusalOutcome, Routes } from '../../../http/route/route.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { PasswordDeps } from '../../password/password.ts'
import { describeSession } from '../../session/session.ts'
import {
  type CheckedChange,
  changeOwnPassword,
  checkPasswordChange,
  hasOwnPassword,
  type PasswordChange,
} from '../../user/password/password-change.ts'
import { type LinkDeps, requestReset } from '../../user/password/password-reset.ts'
import { toPasswordError } from '../account/link.routes.ts'
import type { SignedInUser, Visitor } from '../browser/browser-session.ts'
import { type FormError, KEEP_APPS_FIELD, type RefusedForm } from '../frame/form.ts'
import { buildPage } from '../frame/page.ts'
import { type PageDeps, refusePage } from '../frame/page-route.ts'
import { HOME, redirectTo } from '../frame/page-url.ts'
import { defineUserPage } from '../frame/user-page.ts'
import { ASK_FOR_PASSWORD, buildChangePage, buildNoPasswordPage } from '../password/password-page.ts'
import { describeLoginProblem } from '../sign-in/login-message.ts'

type ChangePageDeps = PageDeps & PasswordDeps & LinkDeps

const CHANGE = '/auth/password'

type PreparedChange =
  | ({ kind: 'refused' } & RefusedForm)
  | {
      kind: 'checked'
      change: PasswordChange
      checked: CheckedChange
    }

const buildPresentMissing = (texts: Texts): RefusedForm => ({
  problem: new Problem('validation_failed', 'The current password is empty.', { reason: 'empty_field' }),
  errors: [{ field: 'current', text: texts.say('password.current-missing') }],
})

/** The fields of the operation as the form names them. */
function toFormErrors(texts: Texts, problem: Problem): FormError[] {
  const isPresent = problem.errors?.some(({ path }) => path === 'current_password')
  if (isPresent) return [{ field: 'current', text: texts.say('password.current-wrong') }]
  return [{ text: describeLoginProblem(texts, problem) }]
}

async function refuseChange(
  deps: PageDeps,
  db: Database,
  { user: signedIn, visitor, problem, errors }: RefusedForm & { user: SignedInUser; visitor: Visitor },
): Promise<RefusalOutcome> {
  const { user } = await describeSession(db, signedIn.caller)
  const page = buildChangePage(deps, { ...visitor, email: user.email, errors })
  const actor = { userId: signedIn.userId, sessionId: signedIn.sessionId, account: null }
  return refusePage(deps, { problem, page, target: signedIn.userId, actor })
}

/** The page on which a user changes its password (docs/contract/pages.md#changing-a-password). */
export const passwordChangeRoutes: Routes<ChangePageDeps> = [
  defineUserPage(
    { path: CHANGE, resource: 'password-page', fresh: 'factor', summary: 'The form to change the password' },
    async (deps: ChangePageDeps, { db, user: signedIn, visitor }) => {
      const { user } = await describeSession(db, signedIn.caller)
      const view = { ...visitor, email: user.email }
      const hasPassword = await hasOwnPassword(db, signedIn.userId)
      const page = hasPassword ? buildChangePage(deps, view) : buildNoPasswordPage(deps, view)
      return buildPage({ brand: deps.brand, ...page })
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: CHANGE,
      resource: 'password',
      action: 'change',
      fresh: 'factor',
      summary: 'Change the password with the form',
      fields: { username: 320, current: 1024, password: 1024, [KEEP_APPS_FIELD]: 1 },
    },
    {
      prepare: async (
        deps: ChangePageDeps,
        { db, user: signedIn, visitor, form, address, now },
      ): Promise<PreparedChange> => {
        if (form.current === '') return { kind: 'refused', ...buildPresentMissing(visitor.texts) }
        const passwords = { currentPassword: form.current, newPassword: form.password }
        const keepApps = form[KEEP_APPS_FIELD] === '1'
        const change = { ...passwords, keepApiKeys: false, keepApps, caller: signedIn.caller, address, now }
        try {
          return { kind: 'checked', change, checked: await checkPasswordChange(deps, db, change) }
        } catch (error) {
          return { kind: 'refused', ...toPasswordError(visitor.texts, error) }
        }
      },
      handle: async (deps, { db, user: signedIn, visitor, prepared }) => {
        if (prepared.kind === 'refused') return refuseChange(deps, db, { ...prepared, user: signedIn, visitor })
        const result = await changeOwnPassword(db, prepared)
        if ('problem' in result) {
          const { problem } = result
          return refuseChange(deps, db, {
            problem,
            errors: toFormErrors(visitor.texts, problem),
            user: signedIn,
            visitor,
          })
        }
        return {
          ...redirectTo(`${HOME}?notice=password-changed`),
          changed: [{ id: signedIn.userId, account: null, url: null }],
        }
      },
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: ASK_FOR_PASSWORD,
      resource: 'password',
      action: 'forgot',
      returnTo: CHANGE,
      summary: 'Ask for a link to a first password',
    },
    async (deps: ChangePageDeps, { db, user: signedIn, visitor, now }) => {
      const { user } = await describeSession(db, signedIn.caller)
      const { result, userId } = await requestReset(deps, db, { email: user.email, texts: visitor.texts, now })
      return {
        ...redirectTo(`${HOME}?notice=password-link-sent`),
        changed: [{ id: userId, account: null, url: null }],
        audit: { result },
      }
    },
  ),
]
