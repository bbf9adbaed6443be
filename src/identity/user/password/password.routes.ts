import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject } from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import { NewPasswordSchema } from '../../password/password.schema.ts'
import type { PasswordDeps } from '../../password/password.ts'
import { KeepApiKeysSchema, KeepAppsSchema, TokensRevoked } from '../user.schema.ts'
import { changeOwnPassword, checkPasswordChange } from './password-change.ts'

const ChangePasswordBody = namedObject('ChangePassword', {
  current_password: Type.String({ minLength: 1, maxLength: 1024 }),
  new_password: NewPasswordSchema,
  keep_api_keys: Type.Optional(KeepApiKeysSchema),
  keep_apps: Type.Optional(KeepAppsSchema),
})

/** The caller's own password (docs/contract/sessions.md#changing-a-password). */
export const passwordRoutes: Routes<PasswordDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/password/change',
      resource: 'password',
      action: 'change',
      accountScope: 'none',
      access: 'caller',
      fresh: 'factor',
      strictRateLimit: true,
      summary: "Change the caller's own password",
      description:
        'Needs the current password; a wrong one counts as a failed sign-in. Ends the other sessions of the user, keeps this one, ends its apps unless `keep_apps` is true, and revokes its API keys unless `keep_api_keys` is true.',
      body: ChangePasswordBody,
      data: TokensRevoked,
      problems: ['conflict', 'not_found'],
    },
    {
      prepare: async (deps: PasswordDeps, { db, body, caller, address, now }) => {
        const change = {
          currentPassword: body.current_password,
          newPassword: body.new_password,
          keepApiKeys: body.keep_api_keys ?? false,
          keepApps: body.keep_apps ?? false,
          caller,
          address,
          now,
        }
        return { change, checked: await checkPasswordChange(deps, db, change) }
      },
      handle: async (_deps, { db, prepared, caller }) => {
        const result = await changeOwnPassword(db, prepared)
        if ('problem' in result) return { kind: 'refusal', problem: result.problem, target: caller.userId }
        return {
          data: { revoked: result.sessions, api_keys_revoked: result.apiKeys },
          message: 'Password changed. Other sessions are ended.',
          changed: [{ id: caller.userId, account: null, url: null }],
        }
      },
    },
  ),
]
