import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject, TimestampSchema } from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import { NO_STORE } from '../../session/session.routes.ts'
import { readFactorProof } from '../second-factor/factor-proof.ts'
import { ProofBody } from '../second-factor/second-factor.schema.ts'
import type { FactorDeps } from '../second-factor/second-factor.ts'
import { chargeStepUp, stepUp } from './step-up.ts'

const SteppedUpRow = namedObject('SteppedUpSession', {
  jwt: Type.String({ description: 'Of the same session. The earlier JWT stays valid and counts as fresh too.' }),
  token_type: Type.Literal('Bearer'),
  expires_in: Type.Integer({ description: 'Lifetime of the JWT in seconds, from now.' }),
  auth_time: TimestampSchema,
})

/** A new proof of a second factor (docs/contract/second-factor.md#step-up). */
export const stepUpRoutes: Routes<FactorDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/session/step-up',
      resource: 'session',
      action: 'step-up',
      accountScope: 'none',
      access: 'caller',
      strictRateLimit: true,
      summary: 'Prove the second factor again',
      description:
        'Dangerous requests need a proof of the last 10 minutes (403 `fresh_factor_required`). Wrong codes are throttled as at a sign-in.',
      body: ProofBody,
      data: SteppedUpRow,
      problems: ['conflict'],
    },
    {
      prepare: async (_deps: FactorDeps, { db, body, caller, address, now }) => {
        const input = { caller, proof: readFactorProof(body), address, now }
        return { input, until: await chargeStepUp(db, input) }
      },
      handle: async (deps, { db, caller, prepared }) => {
        const result = await stepUp(deps, db, prepared)
        if ('problem' in result) return { kind: 'refusal', problem: result.problem, target: caller.sessionId }
        const { jwt, expiresInSeconds, authTime } = result
        return {
          data: { jwt, token_type: 'Bearer' as const, expires_in: expiresInSeconds, auth_time: authTime.toISOString() },
          message: 'Second factor proven.',
          headers: NO_STORE,
          changed: [{ id: caller.sessionId, account: null, url: null }],
        }
      },
    },
  ),
]
