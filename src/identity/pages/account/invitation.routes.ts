import type { Texts } from '../../../base/language/texts.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { RefusalOutcome, Routes } from '../../../http/route/route.ts'
import { findNameFault } from '../../../http/shape/shown-name.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { openFirstSession } from '../../account/invitation/first-session.ts'
import {
  type Acceptance,
  type AcceptanceDeps,
  acceptInvitation,
  describeInvitation,
  type PreparedAcceptance,
  prepareAcceptance,
} from '../../account/invitation/invitation-acceptance.ts'
import type { SessionDeps } from '../../session/session.ts'
import { buildLinkInvalid } from '../../user/proof/proof-token.ts'
import { signInBrowser, type Visitor } from '../browser/browser-session.ts'
import { findErrorMessage } from '../frame/error-message.ts'
import type { RefusedForm } from '../frame/form.ts'
import { buildPage } from '../frame/page.ts'
import { definePage, type PageDeps, refusePage, showProblem } from '../frame/page-route.ts'
import { buildRefreshUrl, HOME, ORGANIZATION_LOGIN, redirectTo } from '../frame/page-url.ts'
import type { SignInPageDeps } from '../sign-in/sign-in-goal.ts'
import { buildInvitationPage, INVITATION } from './invitation-page.ts'
import { toPasswordError } from './link.routes.ts'

/** Dependencies of the page of an invitation. */
export interface InvitationPageDeps
  extends PageDeps,
    AcceptanceDeps,
    SessionDeps,
    Pick<SignInPageDeps, 'listProviders'> {}

type PreparedForm = RefusedForm | { acceptance: Acceptance; prepared: PreparedAcceptance }

const NAME_FAULTS = { unsafe_character: 'profile.name-unsafe', blank: 'profile.name-blank' } as const

/** The fault of a typed name, which may be empty. */
export function checkName(texts: Texts, name: string): RefusedForm | undefined {
  const fault = name === '' ? undefined : findNameFault(name)
  if (!fault) return undefined
  const problem = new Problem('validation_failed', 'The name breaks a rule.', { reason: fault })
  return { problem, errors: [{ field: 'name', text: texts.say(NAME_FAULTS[fault]) }] }
}

/** Shows the page again with the fault; for an expired link, the error. */
async function refuseForm(
  deps: InvitationPageDeps,
  db: Database,
  refused: RefusedForm & { visitor: Visitor; form: { token: string; name: string }; requestId: string; now: Date },
): Promise<RefusalOutcome> {
  const { problem, errors, visitor, form, requestId, now } = refused
  const { token, name } = form
  const invitation = await describeInvitation(db, { token, signedIn: visitor.user?.userId, now })
  if (!invitation || problem.code === 'link_invalid') return showProblem(deps, problem, { requestId, visitor })
  const view = { invitation, token, name, errors, ...visitor }
  return refusePage(deps, { problem, page: buildInvitationPage(deps, view) })
}

/** The page of the link in an invitation (docs/contract/pages.md#links-by-mail). */
export const invitationPageRoutes: Routes<InvitationPageDeps> = [
  definePage(
    { path: INVITATION, resource: 'invitation-page', summary: 'The page of an invitation', query: ['token'] },
    async (deps: InvitationPageDeps, { db, visitor, query, requestId, now }) => {
      const token = query.token ?? ''
      if (visitor.isRefreshable)
        return { kind: 'redirect', location: buildRefreshUrl(`${INVITATION}?${new URLSearchParams({ token })}`) }
      const invitation = await describeInvitation(db, { token, signedIn: visitor.user?.userId, now })
      if (!invitation) return showProblem(deps, buildLinkInvalid('page'), { requestId, visitor })
      const view = { invitation, token, ...visitor }
      return buildPage({ brand: deps.brand, ...buildInvitationPage(deps, view) })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: INVITATION,
      resource: 'account-invitation',
      action: 'accept',
      accountScope: 'account',
      summary: 'Accept an invitation with the form',
      fields: { token: 200, username: 320, name: 200, password: 1024 },
    },
    {
      prepare: async (deps: InvitationPageDeps, { db, visitor, form, now }): Promise<PreparedForm> => {
        const name = form.name.trim()
        const refused = checkName(visitor.texts, name)
        if (refused) return refused
        const { token, password } = form
        const acceptance = { token, password, name: name || null, signedIn: visitor.user?.caller, now }
        try {
          return { acceptance, prepared: await prepareAcceptance(deps, db, acceptance) }
        } catch (error) {
          return toPasswordError(visitor.texts, error)
        }
      },
      handle: async (deps, { db, visitor, form, prepared, address, userAgent, requestId, now }) => {
        const shown = { visitor, form, requestId, now }
        if ('problem' in prepared) return refuseForm(deps, db, { ...prepared, ...shown })
        const result = await acceptInvitation(deps, db, prepared)
        if ('problem' in result) {
          const { problem } = result
          const errors = [{ text: findErrorMessage(visitor.texts, problem.code, problem.reason).text }]
          return refuseForm(deps, db, { problem, errors, ...shown })
        }
        const { invitation, member, isNewUser } = result
        const issued = isNewUser
          ? await openFirstSession(deps, db, { accepted: result, origin: { address, userAgent }, now })
          : undefined
        return {
          // An account may admit members by its own provider only.
          ...redirectTo(isNewUser && !issued ? ORGANIZATION_LOGIN : `${HOME}?notice=joined`),
          ...(issued && { cookies: signInBrowser(deps, issued, { email: invitation.email, now }) }),
          changed: [{ id: invitation.id, account: invitation.account, url: null }],
          actor: { userId: member.userId, sessionId: issued?.sessionId ?? null, account: invitation.account },
          audit: { user: member.userId, roles: member.roles, is_new_user: isNewUser },
        }
      },
    },
  ),
]
