import type { UserId } from '../../../base/id.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { RefusalOutcome, Routes } from '../../../http/route/route.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { toAuthentication } from '../../sign-in/passkey/passkey.schema.ts'
import { logInWithPasskey } from '../../sign-in/passkey-login/passkey-login.ts'
import {
  type CheckedFactorLogin,
  checkFactorLogin,
  type FactorLogin,
  logInWithFactor,
} from '../../sign-in/second-factor/factor-login.ts'
import type { FactorProof } from '../../sign-in/second-factor/factor-proof.ts'
import { findFactors, listFactorMethods } from '../../sign-in/second-factor/second-factor.ts'
import type { Visitor } from '../browser/browser-session.ts'
import type { RefusedForm } from '../frame/form.ts'
import { definePage, refusePage, showProblem } from '../frame/page-route.ts'
import { buildSignInUrl } from '../frame/page-url.ts'
import { describeLoginProblem } from './login-message.ts'
import { CREDENTIAL_LIMIT, readProof } from './passkey-form.ts'
import { askForSecondStep, SECOND_STEP } from './second-step-page.ts'
import { checkWeb, continueSignedIn, type Goal, readGoal, type SignInPageDeps } from './sign-in-goal.ts'
import { buildSignInPage } from './sign-in-page.ts'

/** The proof in the fields of a form: the answer of a passkey, else a code; undefined for an empty form. */
export function readFormProof({ code, credential }: { code: string; credential: string }): FactorProof | undefined {
  if (credential !== '') return { kind: 'passkey', credential: toAuthentication(readProof(credential)) }
  return code.trim() === '' ? undefined : { kind: 'code', code: code.trim() }
}

/** The 422 for a form without a code. */
export function buildCodeMissing(texts: Texts): RefusedForm {
  return {
    problem: new Problem('validation_failed', 'The code is empty.', { reason: 'empty_field' }),
    errors: [{ field: 'code', text: texts.say('proof.code-missing') }],
  }
}

type PreparedStep = { goal: Goal } & ({ login: FactorLogin; checked: CheckedFactorLogin } | { login: undefined })

async function refuseStep(
  deps: SignInPageDeps,
  db: Database,
  refused: RefusedForm & {
    userId: UserId | null
    challenge: string
    goal: Goal
    visitor: Visitor
    address: string
    now: Date
  },
): Promise<RefusalOutcome> {
  const { problem, userId, ...step } = refused
  const methods = userId === null ? ['totp' as const] : listFactorMethods((await findFactors(db, userId)).count)
  const page = await askForSecondStep(deps, db, { ...step, methods, userId })
  return refusePage(deps, { problem, page, target: userId, actor: { userId, sessionId: null, account: null } })
}

/** The second step of a sign-in, and the sign-in with a passkey alone (docs/contract/pages.md#second-step). */
export const secondStepRoutes: Routes<SignInPageDeps> = [
  definePage(
    {
      method: 'POST',
      path: SECOND_STEP,
      resource: 'login',
      action: 'factor',
      summary: 'Complete a sign-in with a second factor in the form',
      fields: { challenge: 255, code: 64, credential: CREDENTIAL_LIMIT, redirect_url: 4096, next: 4096 },
      againAt: ({ redirect_url, next }) => buildSignInUrl({ redirect_url, next }),
    },
    {
      prepare: async (deps: SignInPageDeps, { db, form, address, userAgent, now }): Promise<PreparedStep> => {
        const goal = readGoal(deps, form)
        checkWeb(goal)
        const proof = readFormProof(form)
        if (!proof) return { goal, login: undefined }
        const login = { challenge: form.challenge, proof, origin: { address, userAgent }, now }
        return { goal, login, checked: await checkFactorLogin(db, login) }
      },
      handle: async (deps, { db, form, visitor, cookieHeader, address, now, prepared }) => {
        const { goal } = prepared
        const shown = { challenge: form.challenge, goal, visitor, address, now }
        if (!prepared.login) return refuseStep(deps, db, { ...buildCodeMissing(visitor.texts), userId: null, ...shown })
        const result = await logInWithFactor(deps, db, prepared)
        if (!('problem' in result)) return continueSignedIn(deps, db, { visitor, goal, signedIn: result, now })
        const { problem, userId } = result
        const errors = [{ text: describeLoginProblem(visitor.texts, problem) }]
        // An expired challenge has no user: the sign-in starts again.
        if (userId !== null) return refuseStep(deps, db, { problem, errors, userId, ...shown })
        const page = await buildSignInPage(deps, db, { goal, visitor, cookieHeader, now, errors })
        return refusePage(deps, { problem, page })
      },
    },
  ),
  definePage(
    {
      method: 'POST',
      path: '/auth/sign-in/passkey',
      resource: 'login',
      action: 'passkey',
      summary: 'Sign in with a passkey in the form',
      fields: { credential: CREDENTIAL_LIMIT, redirect_url: 4096, next: 4096 },
      againAt: ({ redirect_url, next }) => buildSignInUrl({ redirect_url, next }),
    },
    async (deps: SignInPageDeps, { db, form, visitor, cookieHeader, address, userAgent, now, requestId }) => {
      const goal = readGoal(deps, form)
      checkWeb(goal)
      const proof = readFormProof({ code: '', credential: form.credential })
      if (proof?.kind !== 'passkey')
        return showProblem(deps, new Problem('malformed_request', 'The form holds no passkey.'), {
          requestId,
          visitor,
        })
      const { credential } = proof
      const result = await logInWithPasskey(deps, db, { credential, origin: { address, userAgent }, now })
      if (!('problem' in result)) return continueSignedIn(deps, db, { visitor, goal, signedIn: result, now })
      const { problem, userId } = result
      const errors = [{ text: visitor.texts.say('sign-in.passkey-failed') }]
      const page = await buildSignInPage(deps, db, { goal, visitor, cookieHeader, now, errors })
      const actor = { userId, sessionId: null, account: null }
      return refusePage(deps, { problem, page, target: userId, actor })
    },
  ),
]
