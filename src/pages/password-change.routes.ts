import { Problem } from '../http/problem.ts'
import type { RefusalOutcome, Routes } from '../http/route.ts'
import type { Database } from '../postgres/database.ts'
import { describeSession } from '../session/session.ts'
import type { PasswordDeps } from '../sign-in/password.ts'
import {
  type CheckedChange,
  changeOwnPassword,
  checkPasswordChange,
  type PasswordChange,
} from '../user/password-change.ts'
import type { SignedInPerson, Visitor } from './browser-session.ts'
import { type FormError, KEEP_APPS_FIELD } from './form.ts'
import { toPasswordError } from './link.routes.ts'
import { buildPage } from './page.ts'
import { type PageDeps, refusePage } from './page-route.ts'
import { HOME } from './page-url.ts'
import { buildChangePage } from './password-page.ts'
import { definePersonPage } from './person-page.ts'

type ChangePageDeps = PageDeps & PasswordDeps

const CHANGE = '/auth/password'

type Refused = { problem: Problem; errors: FormError[] }

/** A change of the password by form: refused, or checked. */
type PreparedChange =
  | ({ kind: 'refused' } & Refused)
  | {
      kind: 'checked'
      change: PasswordChange
      checked: CheckedChange
    }

const PRESENT_MISSING: Refused = {
  problem: new Problem('validation_failed', 'The present password is empty.', { reason: 'empty_field' }),
  errors: [{ field: 'current', text: 'Enter your present password' }],
}

/** The fields of the operation as the form names them. */
function toFormErrors(problem: Problem): FormError[] {
  const isPresent = problem.errors?.some(({ path }) => path === 'current_password')
  return [isPresent ? { field: 'current', text: 'This is not your present password' } : { text: problem.detail }]
}

/** Shows the form again with its errors. */
async function refuseChange(
  deps: PageDeps,
  db: Database,
  { person, visitor, problem, errors }: Refused & { person: SignedInPerson; visitor: Visitor },
): Promise<RefusalOutcome> {
  const { user } = await describeSession(db, person.caller)
  const page = buildChangePage(deps, { browserId: visitor.browserId, email: user.email, errors })
  const actor = { userId: person.userId, sessionId: person.sessionId, account: null }
  return refusePage(deps, { problem, page, target: person.userId, actor })
}

/** The page on which a person changes its password (docs/contract/pages.md#changing-a-password). */
export const passwordChangeRoutes: Routes<ChangePageDeps> = [
  definePersonPage(
    {
      method: 'GET',
      path: CHANGE,
      resource: 'password-page',
      action: 'show',
      fresh: 'factor',
      summary: 'The form to change the password',
    },
    {
      handle: async (deps: PageDeps, { db, person, visitor }) => {
        const { user } = await describeSession(db, person.caller)
        const view = { browserId: visitor.browserId, email: user.email }
        return buildPage({ brand: deps.brand, ...buildChangePage(deps, view) })
      },
    },
  ),
  definePersonPage(
    {
      method: 'POST',
      path: CHANGE,
      resource: 'password',
      action: 'change',
      event: 'shared',
      fresh: 'factor',
      strictRateLimit: true,
      summary: 'Change the password with the form',
      fields: { username: 320, current: 1024, password: 1024, [KEEP_APPS_FIELD]: 1 },
    },
    {
      prepare: async (deps: ChangePageDeps, { db, person, form, address, now }): Promise<PreparedChange> => {
        if (form.current === '') return { kind: 'refused', ...PRESENT_MISSING }
        const passwords = { currentPassword: form.current, newPassword: form.password }
        const keepApps = form[KEEP_APPS_FIELD] === '1'
        const change = { ...passwords, keepApiKeys: false, keepApps, caller: person.caller, address, now }
        try {
          return { kind: 'checked', change, checked: await checkPasswordChange(deps, db, change) }
        } catch (error) {
          return { kind: 'refused', ...toPasswordError(error, 'password') }
        }
      },
      handle: async (deps, { db, person, visitor, prepared }) => {
        if (prepared.kind === 'refused') return refuseChange(deps, db, { ...prepared, person, visitor })
        const result = await changeOwnPassword(db, prepared)
        if ('problem' in result) {
          const { problem } = result
          return refuseChange(deps, db, { problem, errors: toFormErrors(problem), person, visitor })
        }
        return {
          kind: 'redirect',
          status: 303,
          location: `${HOME}?notice=password-changed`,
          changed: [{ id: person.userId, account: null, url: null }],
        }
      },
    },
  ),
]
