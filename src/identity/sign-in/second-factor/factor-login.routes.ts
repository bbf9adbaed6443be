import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject } from '../../../http/route/schema.ts'
import { readHeader } from '../../session/session.routes.ts'
import { toLoginOutcome } from '../outcome/login-outcome.ts'
import { LoginPayload } from '../outcome/login-payload.schema.ts'
import { checkFactorLogin, logInWithFactor } from './factor-login.ts'
import { readFactorProof } from './factor-proof.ts'
import { ChallengeSchema, ProofBody } from './second-factor.schema.ts'
import type { FactorDeps } from './second-factor.ts'

const FactorLoginBody = namedObject('FactorLogin', { challenge: ChallengeSchema, ...ProofBody.properties })

/** The second step of a sign-in (docs/contract/second-factor.md#second-step). */
export const factorLoginRoutes: Routes<FactorDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/login/factor',
      resource: 'login',
      action: 'factor',
      accountScope: 'none',
      access: 'public',
      strictRateLimit: true,
      summary: 'Complete a sign-in with a second factor',
      description:
        'After `second_factor_required`, within 5 minutes and from the same network. A challenge takes 5 attempts and completes one sign-in. Wrong codes of a user delay later ones, from any network: 1 s after the 5th, doubling, and 15 minutes from the 10th on (429 with `Retry-After`).',
      body: FactorLoginBody,
      data: LoginPayload,
      problems: ['second_factor_failed', 'connection_required'],
    },
    {
      prepare: async (_deps: FactorDeps, { db, body, address, headers, now }) => {
        const origin = { address, userAgent: readHeader(headers, 'user-agent') }
        const login = { challenge: body.challenge, proof: readFactorProof(body), origin, now }
        return { login, checked: await checkFactorLogin(db, login) }
      },
      handle: async (deps, { db, prepared }) => toLoginOutcome(await logInWithFactor(deps, db, prepared)),
    },
  ),
]
