import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject } from '../../../http/route/schema.ts'
import { NO_STORE, readHeader } from '../../session/session.routes.ts'
import { toLoginOutcome } from '../outcome/login-outcome.ts'
import { LoginPayload } from '../outcome/login-payload.schema.ts'
import { PasskeyLoginBody, RequestOptions, toAuthentication } from '../passkey/passkey.schema.ts'
import { askForPasskey } from '../passkey/passkey.ts'
import { askForFactorPasskey } from '../second-factor/factor-login.ts'
import { ChallengeSchema } from '../second-factor/second-factor.schema.ts'
import { type FactorDeps, readUserSession } from '../second-factor/second-factor.ts'
import { logInWithPasskey } from './passkey-login.ts'

const FactorOptionsBody = namedObject('FactorOptions', { challenge: ChallengeSchema })

const OF_LOGIN = { resource: 'login', accountScope: 'none', access: 'public', data: RequestOptions } as const

/** Sign-in with a passkey, and the options of a passkey as a second factor (docs/contract/second-factor.md#passkeys). */
export const passkeyLoginRoutes: Routes<FactorDeps> = [
  defineRoute(
    {
      ...OF_LOGIN,
      method: 'POST',
      path: '/api/v3/auth/login/passkey/options',
      action: 'passkey-options',
      event: 'none',
      strictRateLimit: true,
      summary: 'Begin to sign in with a passkey',
    },
    async (deps: FactorDeps, { db, address, now }) => {
      const ask = { purpose: 'passkey-sign-in', userId: null, sessionId: null, address, now } as const
      const options = await askForPasskey(deps, db, ask)
      return { data: { options }, message: 'Prove the passkey in the browser.', headers: NO_STORE }
    },
  ),
  defineRoute(
    {
      ...OF_LOGIN,
      method: 'POST',
      path: '/api/v3/auth/login/passkey',
      action: 'passkey',
      strictRateLimit: true,
      summary: 'Sign in with a passkey',
      description:
        'Takes the answer of the browser to the options, once, within 5 minutes and from the same network. The device has to verify the user.',
      body: PasskeyLoginBody,
      data: LoginPayload,
      problems: ['second_factor_failed', 'connection_required'],
    },
    async (deps: FactorDeps, { db, body, address, headers, now }) => {
      const origin = { address, userAgent: readHeader(headers, 'user-agent') }
      const credential = toAuthentication(body.credential)
      return toLoginOutcome(await logInWithPasskey(deps, db, { credential, origin, now }))
    },
  ),
  defineRoute(
    {
      ...OF_LOGIN,
      method: 'POST',
      path: '/api/v3/auth/login/factor/options',
      action: 'factor-options',
      event: 'none',
      strictRateLimit: true,
      summary: 'Ask for a passkey as the second step of a sign-in',
      body: FactorOptionsBody,
      problems: ['second_factor_failed'],
    },
    async (deps: FactorDeps, { db, body, address, now }) => {
      const result = await askForFactorPasskey(deps, db, { challenge: body.challenge, address, now })
      if ('problem' in result) return { kind: 'refusal', problem: result.problem }
      return { data: result, message: 'Prove the passkey in the browser.', headers: NO_STORE }
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/session/step-up/options',
      resource: 'session',
      action: 'step-up-options',
      accountScope: 'none',
      access: 'caller',
      event: 'none',
      strictRateLimit: true,
      summary: 'Ask for a passkey to prove the second factor again',
      data: RequestOptions,
      problems: ['conflict'],
    },
    async (deps: FactorDeps, { db, caller, address, now }) => {
      const sessionId = readUserSession(caller)
      const ask = { purpose: 'passkey-factor', userId: caller.userId, sessionId, address, now } as const
      const options = await askForPasskey(deps, db, ask)
      return { data: { options }, message: 'Prove the passkey in the browser.', headers: NO_STORE }
    },
  ),
]
