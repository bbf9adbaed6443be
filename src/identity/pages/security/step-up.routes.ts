import { html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { Problem } from '../../../http/problem/problem.ts'
import type { RefusalOutcome, Routes } from '../../../http/route/route.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { askForPasskey } from '../../sign-in/passkey/passkey.ts'
import { type FactorDeps, findFactors, listFactorMethods } from '../../sign-in/second-factor/second-factor.ts'
import { chargeStepUp, type StepUp, stepUp } from '../../sign-in/step-up/step-up.ts'
import { readNextPath } from '../../sso/next-path.ts'
import type { SignedInUser } from '../browser/browser-session.ts'
import { type FormError, renderFormToken } from '../frame/form.ts'
import { buildCard, type FormView } from '../frame/layout.ts'
import { buildPage, type PageBody } from '../frame/page.ts'
import { type PageDeps, refusePage } from '../frame/page-route.ts'
import { buildSignInUrl, HOME, redirectTo } from '../frame/page-url.ts'
import { defineUserPage } from '../frame/user-page.ts'
import { PASSKEY } from '../script/page-script.ts'
import { describeLoginProblem } from '../sign-in/login-message.ts'
import { CREDENTIAL_LIMIT } from '../sign-in/passkey-form.ts'
import { buildCodeMissing, readFormProof } from '../sign-in/second-step.routes.ts'
import { renderProofForms } from '../sign-in/second-step-page.ts'

/** Dependencies of the page that asks for a fresh proof. */
export interface StepUpPageDeps extends PageDeps, FactorDeps {}

const STEP_UP = '/auth/step-up'

interface StepUpRequest extends FormView {
  user: SignedInUser
  next: string
  address: string
  now: Date
}

/** Builds the page that asks for a fresh proof: of the second factor, or a new sign-in of a user without one. */
async function buildStepUpPage(deps: StepUpPageDeps, tx: Database, request: StepUpRequest): Promise<PageBody> {
  const { user, browserId, texts, next, errors = [], address, now } = request
  const { userId, sessionId } = user
  const { count } = await findFactors(tx, userId)
  const methods = listFactorMethods(count)
  const passkeyOptions = methods.includes('passkey')
    ? await askForPasskey(deps, tx, { purpose: 'passkey-factor', userId, sessionId, address, now })
    : undefined
  const hidden = html`${renderFormToken(deps, browserId)}
<input type="hidden" name="next" value="${next}">`
  const content = html`${
    methods.length > 0
      ? renderProofForms({ action: STEP_UP, methods, passkeyOptions, hidden, errors, texts })
      : html`<a class="button" href="${buildSignInUrl({ next, again: '1' })}">${texts.say('step-up.again')}</a>`
  }
<p class="small centered"><a href="${HOME}">${texts.say('step-up.back')}</a></p>`
  const lead = { title: texts.say('proof.title'), text: texts.say('step-up.text') }
  return buildCard(request, { ...lead, content, scripts: [PASSKEY] })
}

/** Fault of a proof: of a code, of a passkey, or too many attempts. */
function describeRefusal(texts: Texts, problem: Problem): FormError {
  const path = problem.errors?.[0]?.path
  if (path === 'code') return { field: 'code', text: texts.say('proof.code-wrong') }
  return { text: path === undefined ? describeLoginProblem(texts, problem) : texts.say('proof.passkey-wrong') }
}

async function refuseProof(
  deps: StepUpPageDeps,
  db: Database,
  { problem, ...request }: StepUpRequest & { problem: Problem },
): Promise<RefusalOutcome> {
  const page = await buildStepUpPage(deps, db, request)
  const { userId, sessionId } = request.user
  return refusePage(deps, { problem, page, target: sessionId, actor: { userId, sessionId, account: null } })
}

/** The page that asks for a fresh proof (docs/contract/pages.md#confirmation). */
export const stepUpPageRoutes: Routes<StepUpPageDeps> = [
  defineUserPage(
    {
      path: STEP_UP,
      resource: 'step-up-page',
      // The challenge of a passkey is stored.
      writes: true,
      strictRateLimit: true,
      summary: 'The form for a fresh proof',
      query: ['next'],
    },
    async (deps: StepUpPageDeps, { db, user, visitor, query, address, now }) => {
      const next = readNextPath(query.next) ?? HOME
      const request = { ...visitor, user, next, address, now }
      return buildPage({ brand: deps.brand, ...(await buildStepUpPage(deps, db, request)) })
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: STEP_UP,
      resource: 'session',
      action: 'step-up',
      summary: 'Prove the second factor again with the form',
      fields: { code: 64, credential: CREDENTIAL_LIMIT, next: 4096 },
    },
    {
      prepare: async (_deps: StepUpPageDeps, { db, user, form, address, now }) => {
        const proof = readFormProof(form)
        if (!proof) return undefined
        const input: StepUp = { caller: user.caller, proof, address, now }
        return { input, until: await chargeStepUp(db, input) }
      },
      handle: async (deps, { db, user, visitor, form, address, now, prepared }) => {
        const next = readNextPath(form.next) ?? HOME
        const { texts } = visitor
        const shown = { ...visitor, user, next, address, now }
        if (!prepared) return refuseProof(deps, db, { ...buildCodeMissing(texts), ...shown })
        const result = await stepUp(deps, db, prepared)
        if ('problem' in result) {
          const { problem } = result
          return refuseProof(deps, db, { problem, errors: [describeRefusal(texts, problem)], ...shown })
        }
        return {
          ...redirectTo(next),
          cookies: deps.cookies.renewSession(result),
          changed: [{ id: user.sessionId, account: null, url: null }],
        }
      },
    },
  ),
]
