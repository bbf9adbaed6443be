import { chooseRequestTexts } from '../../base/language/request-language.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { lineSchema, namedObject, nullable } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { NewPasswordSchema } from '../password/password.schema.ts'
import { readHeader } from '../session/session.routes.ts'
import { buildLoginOutcome } from '../sign-in/outcome/login-outcome.ts'
import { LoginPayload } from '../sign-in/outcome/login-payload.schema.ts'
import { MailAccepted } from '../user/password/link.routes.ts'
import { LinkTokenSchema } from '../user/user.schema.ts'
import { completeSignUp, prepareSignUp, requestSignUp, type SignUpDeps } from './sign-up.ts'

const OF_SIGN_UP = { method: 'POST', accountScope: 'none', access: 'public', strictRateLimit: true } as const

const SignUpBody = namedObject('SignUp', { email: Type.String({ format: 'email', maxLength: 254 }) })

const ConfirmSignUpBody = namedObject('ConfirmSignUp', {
  token: LinkTokenSchema,
  password: NewPasswordSchema,
  name: Type.Optional(nullable(lineSchema(200))),
})

/** Sign-up with e-mail and password (docs/contract/identity.md#sign-up). */
export const signUpRoutes: Routes<SignUpDeps> = [
  defineRoute(
    {
      ...OF_SIGN_UP,
      path: '/api/v3/auth/sign-up',
      resource: 'sign-up',
      action: 'request',
      status: 202,
      summary: 'Ask for a link to sign up',
      description:
        'The answer is the same for every address: a user who has it already gets a mail that says so. The link is valid for one hour and works once. `SIGN_UP` opens the route.',
      body: SignUpBody,
      data: MailAccepted,
      problems: ['sign_up_closed', 'overloaded'],
    },
    async (deps: SignUpDeps, { db, body, headers, address, now }) => {
      const texts = chooseRequestTexts(headers)
      const result = await requestSignUp(deps, db, { email: body.email, origin: { address }, texts, now })
      return {
        data: { accepted: true as const },
        message: 'If this address may sign up, a mail is on its way.',
        changed: [{ id: null, account: null, url: null }],
        audit: { result },
      }
    },
  ),
  defineRoute(
    {
      ...OF_SIGN_UP,
      path: '/api/v3/auth/sign-up/confirm',
      resource: 'login',
      action: 'sign-up',
      summary: 'Sign up by the link of a mail',
      description:
        'Registers the user with this password and an account of its own, and signs it in. The address counts as verified.',
      body: ConfirmSignUpBody,
      data: LoginPayload,
      problems: ['sign_up_closed', 'link_invalid', 'conflict', 'overloaded'],
    },
    {
      prepare: async (deps: SignUpDeps, { db, body, address, headers, trace, now }) => {
        const { token, password, name = null } = body
        const origin = { address, userAgent: readHeader(headers, 'user-agent') }
        const confirmation = { token, password, name, origin, trace, now }
        return { confirmation, prepared: await prepareSignUp(deps, db, confirmation) }
      },
      handle: async (deps, { db, prepared }) => {
        const result = await completeSignUp(deps, db, prepared)
        if ('problem' in result) return { kind: 'refusal', problem: result.problem }
        const { user, issued } = result
        return buildLoginOutcome({ user, issued, isNewUser: true, redirectUrl: null })
      },
    },
  ),
]
