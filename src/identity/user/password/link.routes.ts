import { chooseRequestTexts } from '../../../base/language/request-language.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject } from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import { NewPasswordSchema } from '../../password/password.schema.ts'
import type { PasswordDeps } from '../../password/password.ts'
import { KeepApiKeysSchema, LinkTokenSchema, TokensRevoked } from '../user.schema.ts'
import { requestVerification, verifyByLink } from './email-verification.ts'
import { type LinkDeps, prepareReset, requestReset, resetByLink } from './password-reset.ts'

/** The answer to a request for a mail. */
export const MailAccepted = namedObject(
  'MailAccepted',
  { accepted: Type.Literal(true) },
  { description: 'The same for every address.' },
)

const ForgotPasswordBody = namedObject(
  'ForgotPassword',
  // No format: a malformed address matches no user.
  { email: Type.String({ minLength: 1, maxLength: 320 }) },
)

const ResetPasswordBody = namedObject('ResetPassword', {
  token: LinkTokenSchema,
  password: NewPasswordSchema,
  keep_api_keys: Type.Optional(KeepApiKeysSchema),
})

const VerifyEmailBody = namedObject('VerifyEmail', { token: LinkTokenSchema })

const actorOf = (userId: Parameters<typeof requestVerification>[2]['userId'] | null) => ({
  userId,
  sessionId: null,
  account: null,
})

const OF_PASSWORD = { resource: 'password', accountScope: 'none', access: 'public' } as const

/** Links by mail: a new password, and the proof of an address (docs/contract/sessions.md#reset-by-mail). */
export const linkRoutes: Routes<LinkDeps & PasswordDeps> = [
  defineRoute(
    {
      ...OF_PASSWORD,
      method: 'POST',
      path: '/api/v3/auth/password/forgot',
      action: 'forgot',
      strictRateLimit: true,
      status: 202,
      summary: 'Ask for a link to set a new password',
      description:
        'The answer is the same for every address. A user gets at most 3 links in 15 minutes; each is valid for one hour and works once.',
      body: ForgotPasswordBody,
      data: MailAccepted,
      problems: ['dependency_unavailable'],
    },
    async (deps: LinkDeps, { db, body, headers, now }) => {
      const texts = chooseRequestTexts(headers)
      const { result, userId } = await requestReset(deps, db, { email: body.email, texts, now })
      return {
        data: { accepted: true as const },
        message: 'If a user has this address, a mail with a link is on its way.',
        // Also for an unknown address, so that both cost the same.
        changed: [{ id: userId, account: null, url: null }],
        actor: actorOf(userId),
        audit: { result },
      }
    },
  ),
  defineRoute(
    {
      ...OF_PASSWORD,
      method: 'POST',
      path: '/api/v3/auth/password/reset',
      action: 'reset',
      strictRateLimit: true,
      summary: 'Set a new password by the link of a mail',
      description:
        'Verifies the address, signs the user out everywhere, revokes its API keys unless `keep_api_keys` is true, and clears the sign-in throttle.',
      body: ResetPasswordBody,
      data: TokensRevoked,
      problems: ['link_invalid'],
    },
    {
      prepare: (deps: PasswordDeps, { db, body, now }) => prepareReset(deps, db, { ...body, now }),
      handle: async (_deps, { db, body, prepared, now }) => {
        const keepApiKeys = body.keep_api_keys ?? false
        const result = await resetByLink(db, { token: body.token, prepared, keepApiKeys, now })
        if ('problem' in result) return { kind: 'refusal', problem: result.problem }
        const { userId, ended } = result
        return {
          data: { revoked: ended.sessions, api_keys_revoked: ended.apiKeys },
          message: 'Password set. Sign in with it.',
          changed: [{ id: userId, account: null, url: null }],
          actor: actorOf(userId),
        }
      },
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/email/verify/request',
      resource: 'email',
      action: 'request-verification',
      accountScope: 'none',
      access: 'caller',
      strictRateLimit: true,
      status: 202,
      summary: "Ask for a link that verifies the caller's own address",
      description: 'No mail is sent to an address that is verified. At most 3 links in 15 minutes.',
      data: MailAccepted,
      problems: ['dependency_unavailable'],
    },
    async (deps: LinkDeps, { db, caller, headers, now }) => {
      const texts = chooseRequestTexts(headers)
      const result = await requestVerification(deps, db, { userId: caller.userId, texts, now })
      return {
        data: { accepted: true as const },
        message: 'If your address is not verified yet, a mail with a link is on its way.',
        changed: [{ id: caller.userId, account: null, url: null }],
        audit: { result },
      }
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/email/verify',
      resource: 'email',
      action: 'verify',
      accountScope: 'none',
      access: 'public',
      strictRateLimit: true,
      summary: 'Verify an address by the link of a mail',
      body: VerifyEmailBody,
      data: namedObject('EmailVerified', { verified: Type.Literal(true) }),
      problems: ['link_invalid'],
    },
    async (_deps: LinkDeps, { db, body, now }) => {
      const result = await verifyByLink(db, { token: body.token, now })
      if ('problem' in result) return { kind: 'refusal', problem: result.problem }
      const { userId } = result
      return {
        data: { verified: true as const },
        message: 'E-mail address verified.',
        changed: [{ id: userId, account: null, url: null }],
        actor: actorOf(userId),
      }
    },
  ),
]
