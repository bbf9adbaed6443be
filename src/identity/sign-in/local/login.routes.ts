import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject } from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import type { PasswordDeps } from '../../password/password.ts'
import { readHeader } from '../../session/session.routes.ts'
import type { SessionDeps } from '../../session/session.ts'
import { toLoginOutcome } from '../outcome/login-outcome.ts'
import { LoginPayload } from '../outcome/login-payload.schema.ts'
import { checkLocalLogin, logInLocally } from './local-login.ts'

type LocalLoginDeps = SessionDeps & PasswordDeps

const LocalLoginBody = namedObject('LocalLogin', {
  // No format: a malformed address matches no user.
  email: Type.String({ minLength: 1, maxLength: 320 }),
  password: Type.String({ minLength: 1, maxLength: 1024 }),
})

/** Sign-in with e-mail and password (docs/contract/sessions.md#local-sign-in). */
export const loginRoutes: Routes<LocalLoginDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/login/local',
      resource: 'login',
      action: 'local',
      accountScope: 'none',
      access: 'public',
      strictRateLimit: true,
      needsAdmission: true,
      summary: 'Sign in with e-mail and password',
      description:
        'Failed attempts delay later ones (429 with `Retry-After`). With one e-mail from one network address: 1 s after the 5th failure, doubling, and 15 minutes from the 10th on. From one network address with any e-mail: 1 s after the 20th, doubling, at most 60 s. With one e-mail from any address: 1 s after the 5th, doubling, at most 30 s, and further failures do not postpone a waiting attempt from another address. Failures expire after an hour without one, and with a password reset.',
      body: LocalLoginBody,
      data: LoginPayload,
      problems: ['login_failed', 'connection_required', 'second_factor_required'],
    },
    {
      prepare: async (deps: LocalLoginDeps, { db, body, address, headers, now }) => {
        const login = { ...body, address, userAgent: readHeader(headers, 'user-agent'), now }
        return { login, checked: await checkLocalLogin(deps, db, login) }
      },
      handle: async (deps, { db, body, prepared }) =>
        toLoginOutcome(await logInLocally(deps, db, prepared), body.email),
    },
  ),
]
