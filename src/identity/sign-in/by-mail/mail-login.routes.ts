import { chooseRequestTexts } from '../../../base/language/request-language.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject } from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import { NO_STORE, readHeader } from '../../session/session.routes.ts'
import { toLoginOutcome } from '../outcome/login-outcome.ts'
import { LoginPayload } from '../outcome/login-payload.schema.ts'
import {
  checkMailLogin,
  logInByMail,
  MAIL_LOGIN_LIFETIME_MS,
  type MailLoginDeps,
  requestMailLogin,
} from './mail-login.ts'

const RequestMailLoginBody = namedObject(
  'RequestMailLogin',
  // No format: a malformed address matches no user.
  { email: Type.String({ minLength: 1, maxLength: 320 }) },
)

const MailLoginBegun = namedObject('MailLoginBegun', {
  login: Type.String({ description: 'The id of this sign-in, for its code. The same for every address.' }),
  expires_in: Type.Integer({ description: 'Lifetime of the code, in seconds.' }),
})

const MailLoginBody = namedObject('MailLogin', {
  login: Type.String({ minLength: 1, maxLength: 200, description: 'The `login` of the request.' }),
  code: Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'The code of the mail. Spaces and dashes do not count.',
  }),
})

const OF_MAIL_LOGIN = { method: 'POST', accountScope: 'none', access: 'public', strictRateLimit: true } as const

/** Sign-in by mail (docs/contract/sessions.md#sign-in-by-mail). */
export const mailLoginRoutes: Routes<MailLoginDeps> = [
  defineRoute(
    {
      ...OF_MAIL_LOGIN,
      path: '/api/v3/auth/login/mail',
      resource: 'mail-login',
      action: 'request',
      status: 202,
      summary: 'Ask for a code by mail to sign in',
      description:
        'The answer is the same for every address. Only the client that holds `login` can use the code. `SIGN_IN_BY_MAIL` opens the route.',
      body: RequestMailLoginBody,
      data: MailLoginBegun,
      problems: ['sign_in_by_mail_off', 'overloaded'],
    },
    async (deps: MailLoginDeps, { db, body, headers, address, now }) => {
      const texts = chooseRequestTexts(headers)
      const asked = { email: body.email.trim(), origin: { address }, texts, now }
      const { login, result, userId } = await requestMailLogin(deps, db, asked)
      return {
        data: { login, expires_in: MAIL_LOGIN_LIFETIME_MS / 1000 },
        message: 'If a user has this address, a mail with a code is on its way.',
        headers: NO_STORE,
        // Also for an unknown address, so that both cost the same.
        changed: [{ id: userId, account: null, url: null }],
        actor: { userId, sessionId: null, account: null },
        audit: { result },
      }
    },
  ),
  defineRoute(
    {
      ...OF_MAIL_LOGIN,
      path: '/api/v3/auth/login/mail/confirm',
      resource: 'login',
      action: 'mail',
      summary: 'Sign in with the code of a mail',
      description:
        'A code is valid for 10 minutes, once, and for 5 attempts. Wrong codes delay later attempts as wrong passwords do.',
      body: MailLoginBody,
      data: LoginPayload,
      problems: ['sign_in_by_mail_off', 'login_failed', 'connection_required', 'second_factor_required'],
    },
    {
      prepare: async (deps: MailLoginDeps, { db, body, address, headers, now }) => {
        const origin = { address, userAgent: readHeader(headers, 'user-agent') }
        const login = { by: { kind: 'code' as const, ...body }, origin, now }
        return { login, checked: await checkMailLogin(deps, db, login) }
      },
      handle: async (deps, { db, prepared }) => toLoginOutcome(await logInByMail(deps, db, prepared)),
    },
  ),
]
