import { Problem } from '../../../http/problem/problem.ts'
import type { Routes } from '../../../http/route/route.ts'
import { findConnectionOfAddress } from '../../connection/domain/connection-domain.ts'
import type { FormView } from '../frame/layout.ts'
import { buildAddressPage } from '../frame/mail-form.ts'
import { buildPage } from '../frame/page.ts'
import { definePage, refusePage } from '../frame/page-route.ts'
import { buildFormUrl, buildGoalUrl, ORGANIZATION_LOGIN, redirectTo } from '../frame/page-url.ts'
import { type Goal, listFormTargets, readGoal, renderGoal, type SignInPageDeps } from '../sign-in/sign-in-goal.ts'

const buildForm = (deps: SignInPageDeps, goal: Goal, view: FormView & { email?: string }) => ({
  ...buildAddressPage(deps, {
    ...view,
    action: ORGANIZATION_LOGIN,
    title: 'organization.title',
    text: 'organization.text',
    fields: renderGoal(goal),
    autocomplete: 'username',
    submit: 'organization.continue',
    back: { href: buildGoalUrl('/auth/sign-in', goal), text: 'mail-login.back' },
  }),
  ...listFormTargets(goal),
})

/** The page of a sign-in by the connection of an account (docs/contract/connections.md#sign-in). */
export const organizationPageRoutes: Routes<SignInPageDeps> = [
  definePage(
    {
      path: ORGANIZATION_LOGIN,
      resource: 'organization-page',
      summary: 'The form to sign in by the provider of an organization',
      query: ['redirect_url', 'next'],
    },
    async (deps: SignInPageDeps, { visitor, query }) =>
      buildPage({ brand: deps.brand, ...buildForm(deps, readGoal(deps, query), visitor) }),
  ),
  definePage(
    {
      method: 'POST',
      path: ORGANIZATION_LOGIN,
      resource: 'organization-page',
      action: 'find',
      event: 'none',
      summary: 'Find the provider of an organization with the form',
      fields: { email: 320, redirect_url: 4096, next: 4096 },
      againAt: (form) => buildFormUrl(ORGANIZATION_LOGIN, form),
    },
    async (deps: SignInPageDeps, { db, visitor, form }) => {
      const goal = readGoal(deps, form)
      const email = form.email.trim()
      const found = email.includes('@') ? await findConnectionOfAddress(db, email) : undefined
      if (!found) {
        const text = visitor.texts.say(email === '' ? 'forgot.email-missing' : 'organization.unknown')
        const problem = new Problem('validation_failed', 'No connection has this domain.', {
          reason: 'no_connection',
        })
        const errors = [{ field: 'email', text }]
        return refusePage(deps, { problem, page: buildForm(deps, goal, { ...visitor, email, errors }) })
      }
      const redirectUrl = goal.target?.url ?? `${deps.baseUrl()}${goal.next ?? '/auth/'}`
      const query = new URLSearchParams({ redirect_url: redirectUrl })
      const location = `/api/v3/auth/login/oauth/${found.connection}?${query}`
      return { ...redirectTo(location), audit: { connection: found.connection } }
    },
  ),
]
