import { Problem } from '../http/problem.ts'
import type { RefusalOutcome, Routes } from '../http/route.ts'
import type { Database } from '../postgres/database.ts'
import { describeSession } from '../session/session.ts'
import {
  type CheckedChange,
  changeOwnPassword,
  checkPasswordChange,
  type PasswordChange,
} from '../user/password-change.ts'
import type { SignedInPerson, Visitor } from './browser-session.ts'
import type { FormError } from './form.ts'
import { toPasswordError } from './link.routes.ts'
import { buildPage } from './page.ts'
import { definePage, type PageDeps, refusePage } from './page-route.ts'
import { askToSignIn, HOME } from './page-url.ts'
import { buildChangePage } from './password-page.ts'

const CHANGE = '/auth/password'

type Refused = { problem: Problem; errors: FormError[] }

/** A change of the password by form: without a session, refused, or checked. */
type PreparedChange =
  | { kind: 'anonymous' }
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
export const passwordChangeRoutes: Routes<PageDeps> = [
  definePage(
    {
      method: 'GET',
      path: CHANGE,
      resource: 'password-page',
      action: 'show',
      summary: 'The form to change the password',
    },
    {
      handle: async (deps: PageDeps, { db, visitor }) => {
        const { person, browserId } = visitor
        if (!person) return askToSignIn(visitor, CHANGE)
        const { user } = await describeSession(db, person.caller)
        return buildPage({ brand: deps.brand, ...buildChangePage(deps, { browserId, email: user.email }) })
      },
    },
  ),
  definePage(
    {
      method: 'POST',
      path: CHANGE,
      resource: 'password',
      action: 'change',
      event: 'shared',
      strictRateLimit: true,
      summary: 'Change the password with the form',
      fields: { username: 320, current: 1024, password: 1024 },
    },
    {
      prepare: async (deps: PageDeps, { db, visitor, form, address, now }): Promise<PreparedChange> => {
        const { person } = visitor
        if (!person) return { kind: 'anonymous' }
        if (form.current === '') return { kind: 'refused', ...PRESENT_MISSING }
        const passwords = { currentPassword: form.current, newPassword: form.password }
        const change = { ...passwords, keepApiKeys: false, caller: person.caller, address, now }
        try {
          return { kind: 'checked', change, checked: await checkPasswordChange(deps, db, change) }
        } catch (error) {
          return { kind: 'refused', ...toPasswordError(error, 'password') }
        }
      },
      handle: async (deps, { db, visitor, prepared }) => {
        const { person } = visitor
        if (!person || prepared.kind === 'anonymous') return askToSignIn(visitor, CHANGE)
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
          actor: { userId: person.userId, sessionId: person.sessionId, account: null },
        }
      },
    },
  ),
]
