import {
  type Acceptance,
  type AcceptanceDeps,
  acceptInvitation,
  describeInvitation,
  type PreparedAcceptance,
  prepareAcceptance,
} from '../account/invitation-acceptance.ts'
import { Problem } from '../http/problem.ts'
import type { RefusalOutcome, Routes } from '../http/route.ts'
import type { Database } from '../postgres/database.ts'
import { buildLinkInvalid } from '../user/proof-token.ts'
import type { Visitor } from './browser-session.ts'
import type { FormError } from './form.ts'
import { buildInvitationPage, INVITATION } from './invitation-page.ts'
import { toPasswordError } from './link.routes.ts'
import { buildPage } from './page.ts'
import { definePage, type PageDeps, refusePage, showProblem } from './page-route.ts'
import { buildRefreshUrl, buildSignInUrl, HOME } from './page-url.ts'
import type { SignInPageDeps } from './sign-in-goal.ts'

/** Dependencies of the page of an invitation. */
export interface InvitationPageDeps extends PageDeps, AcceptanceDeps, Pick<SignInPageDeps, 'listProviders'> {}

type Refused = { problem: Problem; errors: FormError[] }

/** An acceptance by form: refused for a field, or prepared. */
type PreparedForm = Refused | { acceptance: Acceptance; prepared: PreparedAcceptance }

/** A name is one line. */
function checkName(name: string): Refused | undefined {
  if (!/\p{Cc}/u.test(name)) return undefined
  const problem = new Problem('validation_failed', 'The name holds a control character.', { reason: 'name' })
  return { problem, errors: [{ field: 'name', text: 'Write your name on one line' }] }
}

/** Shows the page again with what is wrong; for a link that is not valid any more, the error. */
async function refuseForm(
  deps: InvitationPageDeps,
  db: Database,
  refused: Refused & { visitor: Visitor; form: { token: string; name: string }; requestId: string; now: Date },
): Promise<RefusalOutcome> {
  const { problem, errors, visitor, form, requestId, now } = refused
  const { token, name } = form
  const invitation = await describeInvitation(db, { token, signedIn: visitor.person?.userId, now })
  if (!invitation || problem.code === 'link_invalid') return showProblem(deps, problem, requestId)
  const view = { invitation, token, name, errors, browserId: visitor.browserId }
  return refusePage(deps, { problem, page: buildInvitationPage(deps, view) })
}

/** The page of the link in an invitation (docs/contract/pages.md#links-by-mail). */
export const invitationPageRoutes: Routes<InvitationPageDeps> = [
  definePage(
    {
      method: 'GET',
      path: INVITATION,
      resource: 'invitation-page',
      action: 'show',
      summary: 'The page of an invitation',
      query: ['token'],
    },
    {
      handle: async (deps: InvitationPageDeps, { db, visitor, query, requestId, now }) => {
        const token = query.token ?? ''
        if (visitor.isRefreshable)
          return { kind: 'redirect', location: buildRefreshUrl(`${INVITATION}?${new URLSearchParams({ token })}`) }
        const invitation = await describeInvitation(db, { token, signedIn: visitor.person?.userId, now })
        if (!invitation) return showProblem(deps, buildLinkInvalid('page'), requestId)
        const view = { invitation, token, browserId: visitor.browserId }
        return buildPage({ brand: deps.brand, ...buildInvitationPage(deps, view) })
      },
    },
  ),
  definePage(
    {
      method: 'POST',
      path: INVITATION,
      resource: 'account-invitation',
      action: 'accept',
      accountScope: 'account',
      event: 'shared',
      strictRateLimit: true,
      summary: 'Accept an invitation with the form',
      fields: { token: 200, username: 320, name: 200, password: 1024 },
    },
    {
      prepare: async (deps: InvitationPageDeps, { db, visitor, form, now }): Promise<PreparedForm> => {
        const name = form.name.trim()
        const refused = checkName(name)
        if (refused) return refused
        const { token, password } = form
        const acceptance = { token, password, name: name || null, signedIn: visitor.person?.caller, now }
        try {
          return { acceptance, prepared: await prepareAcceptance(deps, db, acceptance) }
        } catch (error) {
          return toPasswordError(error, 'password')
        }
      },
      handle: async (deps, { db, visitor, form, prepared, requestId, now }) => {
        const shown = { visitor, form, requestId, now }
        if ('problem' in prepared) return refuseForm(deps, db, { ...prepared, ...shown })
        const result = await acceptInvitation(deps, db, prepared)
        if ('problem' in result) {
          const { problem } = result
          return refuseForm(deps, db, { problem, errors: [{ text: problem.detail }], ...shown })
        }
        const { invitation, member, isNewUser } = result
        return {
          kind: 'redirect',
          status: 303,
          location: isNewUser ? buildSignInUrl({ notice: 'joined' }) : `${HOME}?notice=joined`,
          changed: [{ id: invitation.id, account: invitation.account, url: null }],
          actor: { userId: member.userId, sessionId: null, account: invitation.account },
          audit: { user: member.userId, roles: member.roles, is_new_user: isNewUser },
        }
      },
    },
  ),
]
