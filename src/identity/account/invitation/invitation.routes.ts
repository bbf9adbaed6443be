import { chooseRequestTexts } from '../../../base/language/request-language.ts'
import { rowFields } from '../../../http/listing/listing.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { defineList } from '../../../http/route/row-route.ts'
import { IdParams } from '../../../http/route/schema.ts'
import type { Static } from '../../../http/shape/schema-type.ts'
import type { LinkDeps } from '../../user/password/password-reset.ts'
import { toAccountMemberRow } from '../account-member.store.ts'
import { ACCOUNT_ROW, listUnderAccount } from '../own-account.ts'
import {
  AcceptedInvitation,
  AcceptInvitationBody,
  CreateInvitationBody,
  InvitationParams,
  InvitationRow,
} from './invitation.schema.ts'
import { type InvitationRecord, isOneOfEmails, selectInvitations, toStoredInvitationRow } from './invitation.store.ts'
import { createInvitation, INVITE_PERMISSION, revokeInvitation } from './invitation.ts'
import { type AcceptanceDeps, type Accepted, acceptInvitation, prepareAcceptance } from './invitation-acceptance.ts'

const INVITATION_FIELDS = rowFields({
  email: { type: 'text', like: 'few-rows', equals: isOneOfEmails },
  invited_by: { type: 'uuid' },
  expires_at: { type: 'timestamp' },
  accepted_at: { type: 'timestamp' },
  revoked_at: { type: 'timestamp' },
})

const changedOf = ({ id, account }: InvitationRecord) => [{ id, account, url: null }]

/** The state of an invitation at an instant. Pure. */
function findStatus({ acceptedAt, revokedAt, expiresAt }: InvitationRecord, now: Date) {
  if (acceptedAt) return 'accepted'
  if (revokedAt) return 'revoked'
  return expiresAt <= now ? 'expired' : 'open'
}

const toInvitationRow = (invitation: InvitationRecord, now: Date): Static<typeof InvitationRow> => ({
  ...toStoredInvitationRow(invitation),
  status: findStatus(invitation, now),
})

const toAcceptedRow = ({ invitation, member, isNewUser }: Accepted): Static<typeof AcceptedInvitation> => ({
  account: { document_id: invitation.account, name: invitation.accountName },
  member: toAccountMemberRow(member),
  is_new_user: isNewUser,
})

const OF_ACCOUNT_INVITATION = { resource: 'account-invitation', accountScope: 'account' } as const

/** Of a route for those who may invite. */
const OF_INVITERS = {
  ...OF_ACCOUNT_INVITATION,
  permission: INVITE_PERMISSION,
  ownAccounts: true,
  data: InvitationRow,
} as const

/** Invitations of an account (docs/contract/identity.md#invitations). */
export const invitationRoutes: Routes<LinkDeps & AcceptanceDeps> = [
  defineList(
    {
      ...OF_INVITERS,
      path: '/api/v3/identity/account/{id}/invitation',
      summary: 'List the invitations of an account',
      params: IdParams,
      list: INVITATION_FIELDS,
    },
    {
      ...listUnderAccount(selectInvitations),
      toRow: (row, { now }) => toInvitationRow(row, now),
      message: 'Invitations.',
    },
  ),
  defineRoute(
    {
      ...OF_INVITERS,
      method: 'DELETE',
      path: '/api/v3/identity/account/{id}/invitation/{invitation}',
      action: 'delete',
      summary: 'Revoke an invitation',
      params: InvitationParams,
      problems: ['conflict'],
    },
    {
      row: ACCOUNT_ROW,
      handle: async (_deps: LinkDeps, { db, params, scope, now }) => {
        const invitation = await revokeInvitation(db, { target: { id: params.id, scope }, id: params.invitation, now })
        return {
          data: toInvitationRow(invitation, now),
          message: 'Invitation revoked.',
          changed: changedOf(invitation),
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_INVITERS,
      method: 'POST',
      path: '/api/v3/identity/account/{id}/invitation',
      action: 'create',
      status: 201,
      summary: 'Invite a user to an account by e-mail',
      description:
        'Sends a link that is valid for 7 days and replaces an open invitation to the same address. The caller must hold, in this account, everything that the role `member` and `roles` hold.',
      params: IdParams,
      body: CreateInvitationBody,
      problems: ['limit_reached', 'dependency_unavailable'],
    },
    {
      row: ACCOUNT_ROW,
      handle: async (deps: LinkDeps, { db, params, scope, body, headers, caller, now }) => {
        const { email, roles = [] } = body
        const invitation = await createInvitation(deps, db, {
          target: { id: params.id, scope },
          email,
          roles,
          texts: chooseRequestTexts(headers),
          caller,
          now,
        })
        return {
          data: toInvitationRow(invitation, now),
          message: 'Invitation sent.',
          changed: changedOf(invitation),
          location: `/api/v3/identity/account/${invitation.account}/invitation`,
          audit: { roles: invitation.roles },
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_ACCOUNT_INVITATION,
      method: 'POST',
      path: '/api/v3/auth/invitation/accept',
      action: 'accept',
      access: 'public',
      readsCaller: true,
      strictRateLimit: true,
      summary: 'Accept an invitation by the link of its mail',
      description:
        'A user with the invited address sends its session token. A new user sends a password and is registered.',
      body: AcceptInvitationBody,
      data: AcceptedInvitation,
      problems: ['unauthenticated', 'link_invalid', 'conflict'],
    },
    {
      prepare: async (deps: AcceptanceDeps, { db, body, signedIn, now }) => {
        const { token, password, name = null } = body
        const acceptance = { token, password, name, signedIn, now }
        return { acceptance, prepared: await prepareAcceptance(deps, db, acceptance) }
      },
      handle: async (deps, { db, prepared }) => {
        const result = await acceptInvitation(deps, db, prepared)
        if ('problem' in result) return { kind: 'refusal', problem: result.problem }
        const { invitation, member } = result
        return {
          data: toAcceptedRow(result),
          message: 'Invitation accepted.',
          changed: changedOf(invitation),
          actor: { userId: member.userId, sessionId: null, account: invitation.account },
          audit: { user: member.userId, roles: member.roles, is_new_user: result.isNewUser },
        }
      },
    },
  ),
]
