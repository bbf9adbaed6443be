import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { NO_STORE } from '../../session/session.routes.ts'
import { raiseSession } from '../../session/session-proof.ts'
import { chargeFactorAttempt, forgiveFactorAttempt } from '../../throttle/login-attempt.ts'
import { buildThrottled } from '../../throttle/login-problem.ts'
import {
  CodeBody,
  ConfirmedTotpRow,
  EnrolledTotpRow,
  FactorsRow,
  RecoveryCodesRow,
  RemovedFactorRow,
  toEnrolledTotpRow,
  toFactorsRow,
} from './second-factor.schema.ts'
import { type FactorDeps, findFactors, readUserSession, renewRecoveryCodes } from './second-factor.ts'
import { confirmAuthenticator, enrolAuthenticator, removeAuthenticator } from './totp-factor.ts'

const OF_TOTP_FACTOR = { resource: 'totp-factor', accountScope: 'none', access: 'caller' } as const

/** The second factors of the caller (docs/contract/second-factor.md#authenticator-app). */
export const secondFactorRoutes: Routes<FactorDeps> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/auth/factor',
      resource: 'second-factor',
      action: 'find-own',
      accountScope: 'none',
      access: 'caller',
      summary: "Read the caller's own second factors",
      data: FactorsRow,
      problems: ['conflict'],
    },
    async (_deps: FactorDeps, { db, caller }) => {
      readUserSession(caller)
      const { factor, count } = await findFactors(db, caller.userId)
      return {
        data: toFactorsRow(factor, count),
        message: 'Second factors.',
        changed: [{ id: caller.userId, account: null, url: null }],
      }
    },
  ),
  defineRoute(
    {
      ...OF_TOTP_FACTOR,
      method: 'POST',
      path: '/api/v3/auth/factor/totp',
      action: 'create',
      fresh: 'sign-in',
      strictRateLimit: true,
      status: 201,
      summary: 'Enrol an authenticator app',
      description:
        'Returns the secret, once. It is a factor as soon as a code confirms it. Enrolling again replaces an app that was not confirmed.',
      data: EnrolledTotpRow,
      problems: ['conflict'],
    },
    async (deps: FactorDeps, { db, caller, now }) => {
      readUserSession(caller)
      const enrolled = await enrolAuthenticator(deps, db, { userId: caller.userId, now })
      return {
        data: toEnrolledTotpRow(enrolled),
        message: 'Scan the code with the app and confirm with a code of it.',
        headers: NO_STORE,
        changed: [{ id: enrolled.factor.id, account: null, url: null }],
      }
    },
  ),
  defineRoute(
    {
      ...OF_TOTP_FACTOR,
      method: 'POST',
      path: '/api/v3/auth/factor/totp/confirm',
      action: 'confirm',
      fresh: 'sign-in',
      strictRateLimit: true,
      summary: 'Confirm an authenticator app by a code',
      description:
        'Returns ten recovery codes, once, to a user without any. Each later sign-in with a password has a second step. The session counts as one with a second factor.',
      body: CodeBody,
      data: ConfirmedTotpRow,
      problems: ['conflict', 'not_found'],
    },
    {
      prepare: async (_deps: FactorDeps, { db, caller, address, now }) => {
        readUserSession(caller)
        const attempt = { userId: caller.userId, address, now }
        return { attempt, until: await chargeFactorAttempt(db, attempt) }
      },
      handle: async (deps, { db, caller, body, prepared, now }) => {
        const { attempt, until } = prepared
        if (until) return { kind: 'refusal', problem: buildThrottled(until, now), target: caller.userId }
        const confirmed = await confirmAuthenticator(deps, db, { userId: caller.userId, code: body.code, now })
        if ('problem' in confirmed) return { kind: 'refusal', problem: confirmed.problem, target: caller.userId }
        await raiseSession(db, { sessionId: readUserSession(caller), methods: ['otp'], now })
        await forgiveFactorAttempt(db, attempt)
        return {
          data: { document_id: confirmed.id, recovery_codes: confirmed.recoveryCodes },
          message: 'Authenticator app confirmed. Store the recovery codes: they are not shown again.',
          headers: NO_STORE,
          changed: [{ id: confirmed.id, account: null, url: null }],
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_TOTP_FACTOR,
      method: 'DELETE',
      path: '/api/v3/auth/factor/totp',
      action: 'delete',
      fresh: 'factor',
      strictRateLimit: true,
      summary: 'Remove the authenticator app',
      description:
        'With the last second factor the recovery codes are removed, and sessions no longer count as proven by one.',
      data: RemovedFactorRow,
      problems: ['conflict', 'not_found'],
    },
    async (_deps: FactorDeps, { db, caller, now }) => {
      readUserSession(caller)
      const id = await removeAuthenticator(db, { userId: caller.userId, now })
      return {
        data: { document_id: id },
        message: 'Authenticator app removed.',
        changed: [{ id, account: null, url: null }],
      }
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/factor/recovery-code',
      resource: 'recovery-code',
      action: 'renew',
      accountScope: 'none',
      access: 'caller',
      fresh: 'factor',
      strictRateLimit: true,
      summary: 'Replace the recovery codes',
      description: 'Returns ten new codes, once. The earlier ones become invalid.',
      data: RecoveryCodesRow,
      problems: ['conflict'],
    },
    async (deps: FactorDeps, { db, caller, now }) => {
      readUserSession(caller)
      const codes = await renewRecoveryCodes(deps, db, { userId: caller.userId, now })
      return {
        data: { recovery_codes: codes },
        message: 'Recovery codes replaced. Store them: they are not shown again.',
        headers: NO_STORE,
        changed: [{ id: caller.userId, account: null, url: null }],
      }
    },
  ),
]
