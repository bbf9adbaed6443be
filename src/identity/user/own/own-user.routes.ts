import { chooseRequestTexts } from '../../../base/language/request-language.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject } from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import type { LinkDeps } from '../password/password-reset.ts'
import { toUserRow, UserRow } from '../user.schema.ts'
import { cancelEmailChange, confirmByLink, requestEmailChange } from './email-change.ts'
import {
  ConfirmEmailChangeBody,
  DeleteOwnUserBody,
  OwnUserRow,
  RequestEmailChangeBody,
  toOwnUserRow,
  UpdateOwnUserBody,
} from './own-user.schema.ts'
import { changeOwnName, deleteOwnUser, loadOwnUser } from './own-user.ts'

/** Columns that a change can set. */
const SETTABLE = ['name'] as const

const OF_OWN = { resource: 'user', accountScope: 'none', access: 'caller' } as const
const OWN = '/api/v3/auth/user'
const EMAIL_CHANGE = `${OWN}/email-change`

const Withdrawn = namedObject('EmailChangeWithdrawn', { withdrawn: Type.Literal(true) })
const Accepted = namedObject('EmailChangeAccepted', { accepted: Type.Literal(true) })

/** The caller's own user (docs/contract/identity.md#own-profile). */
export const ownUserRoutes: Routes<LinkDeps> = [
  defineRoute(
    {
      ...OF_OWN,
      method: 'GET',
      path: OWN,
      action: 'find-own',
      rowTag: SETTABLE,
      summary: 'Read the own user',
      data: OwnUserRow,
      problems: ['not_found'],
    },
    async (_deps: LinkDeps, { db, caller, now }) => ({
      data: toOwnUserRow(await loadOwnUser(db, { caller, now })),
      message: 'User.',
      changed: [{ id: caller.userId, account: null }],
    }),
  ),
  defineRoute(
    {
      ...OF_OWN,
      method: 'PATCH',
      path: OWN,
      action: 'update-own',
      eventAction: 'update',
      rowTag: SETTABLE,
      summary: 'Change the own name',
      body: UpdateOwnUserBody,
      data: UserRow,
      problems: ['conflict', 'not_found'],
    },
    async (_deps: LinkDeps, { db, caller, body, now }) => {
      const { before, after } = await changeOwnName(db, { caller, name: body.name, now })
      return {
        data: toUserRow(after ?? before),
        before: toUserRow(before),
        message: after ? 'User updated.' : 'User unchanged.',
        changed: after ? [{ id: after.id, account: null }] : [],
      }
    },
  ),
  defineRoute(
    {
      ...OF_OWN,
      method: 'DELETE',
      path: OWN,
      action: 'delete-own',
      eventAction: 'delete',
      fresh: 'sign-in',
      strictRateLimit: true,
      summary: 'Delete the own user',
      description:
        'Ends all that the user opened, as a deletion by an administrator. `email` is the address of the user, as confirmation. The last administrator of the service, and the only administrator of an account, cannot delete themselves.',
      body: DeleteOwnUserBody,
      data: UserRow,
      problems: ['conflict', 'not_found'],
    },
    async (_deps: LinkDeps, { db, caller, body, now }) => {
      const user = await deleteOwnUser(db, { caller, email: body.email, now })
      return { data: toUserRow(user), message: 'User deleted.', changed: [{ id: user.id, account: null }] }
    },
  ),
  defineRoute(
    {
      ...OF_OWN,
      method: 'POST',
      path: EMAIL_CHANGE,
      action: 'request-email-change',
      fresh: 'sign-in',
      strictRateLimit: true,
      status: 202,
      summary: 'Ask for another own e-mail address',
      description:
        'Sends a link to the new address and one to the present address, valid for one hour. The address changes when both were used. The answer is the same for an address that another user has. At most 5 requests in 24 hours.',
      body: RequestEmailChangeBody,
      data: Accepted,
      problems: ['conflict', 'limit_reached', 'not_found', 'dependency_unavailable'],
    },
    async (deps: LinkDeps, { db, caller, body, headers, now }) => {
      await requestEmailChange(deps, db, { caller, email: body.email, texts: chooseRequestTexts(headers), now })
      return {
        data: { accepted: true as const },
        message: 'A mail with a link is on its way to each address. The address changes when both links were used.',
        changed: [{ id: caller.userId, account: null }],
      }
    },
  ),
  defineRoute(
    {
      ...OF_OWN,
      method: 'DELETE',
      path: EMAIL_CHANGE,
      action: 'cancel-email-change',
      summary: 'Withdraw the change of the own e-mail address',
      data: Withdrawn,
      problems: ['conflict', 'not_found'],
    },
    async (_deps: LinkDeps, { db, caller, now }) => {
      const { userId } = await cancelEmailChange(db, { caller, now })
      return {
        data: { withdrawn: true as const },
        message: 'Change withdrawn.',
        changed: [{ id: userId, account: null }],
      }
    },
  ),
  defineRoute(
    {
      ...OF_OWN,
      access: 'public',
      method: 'POST',
      path: `${EMAIL_CHANGE}/confirm`,
      action: 'confirm-email-change',
      eventAction: 'update',
      strictRateLimit: true,
      summary: 'Confirm one address of a change by the link of a mail',
      description:
        'With the second link the address changes, and every session of the user ends but the one that asked for it.',
      body: ConfirmEmailChangeBody,
      data: namedObject('EmailChangeConfirmed', {
        is_changed: Type.Boolean({ description: 'False while the link to the other address is unused.' }),
      }),
      problems: ['link_invalid'],
    },
    async (_deps: LinkDeps, { db, body, now }) => {
      const result = await confirmByLink(db, { token: body.token, now })
      const actor = { userId: result.userId ?? null, sessionId: null, account: null }
      if ('problem' in result) return { kind: 'refusal', problem: result.problem, target: actor.userId, actor }
      const { userId, isChanged } = result
      return {
        data: { is_changed: isChanged },
        message: isChanged ? 'E-mail address changed.' : 'Address confirmed. The other link is still unused.',
        ...(isChanged && { changed: [{ id: userId, account: null }] }),
        actor,
      }
    },
  ),
]
