import type { UserId } from '../../../base/id.ts'
import type { TextKey } from '../../../base/language/texts.ts'
import type { Problem } from '../../../http/problem/problem.ts'
import type { AnswerCookie } from '../../../http/route/outcome.ts'
import type { RefusalOutcome, Routes } from '../../../http/route/route.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { AuthMethod } from '../../session/auth-method.ts'
import { signFor } from '../../session/session.ts'
import { raiseSession } from '../../session/session-proof.ts'
import { findOtherWay, listPasskeys } from '../../sign-in/passkey-login/passkey-registration.ts'
import {
  type FactorDeps,
  findFactors,
  readUserSession,
  renewRecoveryCodes,
} from '../../sign-in/second-factor/second-factor.ts'
import {
  confirmAuthenticator,
  enrolAuthenticator,
  findEnrolled,
  removeAuthenticator,
} from '../../sign-in/second-factor/totp-factor.ts'
import { chargeFactorAttempt, forgiveFactorAttempt } from '../../throttle/login-attempt.ts'
import { buildThrottled } from '../../throttle/login-problem.ts'
import type { SignedInUser, Visitor } from '../browser/browser-session.ts'
import type { FormError } from '../frame/form.ts'
import { findNotice } from '../frame/notice.ts'
import { buildPage } from '../frame/page.ts'
import { type PageAnswer, type PageDeps, refusePage } from '../frame/page-route.ts'
import { redirectTo } from '../frame/page-url.ts'
import { renderError } from '../frame/problem-page.ts'
import { defineUserPage } from '../frame/user-page.ts'
import { describeLoginProblem } from '../sign-in/login-message.ts'
import { buildCodeMissing } from '../sign-in/second-step.routes.ts'
import { buildAppPage, buildRecoveryCodesPage, buildSecurityPage, SECURITY } from './security-page.ts'

/** Dependencies of the pages of second factors. */
export interface SecurityPageDeps extends PageDeps, FactorDeps {}

/** Page at which the browser continues after a fresh proof. */
export const RETURN = `${SECURITY}?notice=confirmed`

const NOTICES: Readonly<Record<string, TextKey>> = {
  confirmed: 'security.confirmed',
  'app-added': 'security.app-added',
  'app-removed': 'security.app-removed',
  'passkey-added': 'security.passkey-added',
  'passkey-renamed': 'security.passkey-renamed',
  'passkey-removed': 'security.passkey-removed',
}

/** Continues at the page of the second factors, with a message. */
export const returnWith = (notice: string) => redirectTo(`${SECURITY}?notice=${notice}`)

/** Marks the session of a user as one with a second factor. Returns the cookies of its new JWT. */
export async function raise(
  deps: SecurityPageDeps,
  db: Database,
  { user, methods, now }: { user: SignedInUser; methods: readonly AuthMethod[]; now: Date },
): Promise<AnswerCookie[]> {
  const sessionId = readUserSession(user.caller)
  return deps.cookies.renewSession(signFor(deps, await raiseSession(db, { sessionId, methods, now }), now))
}

/** The answer to a new factor: the recovery codes that it brought, else the page of the second factors. */
export function answerNewFactor(
  deps: SecurityPageDeps,
  { codes, visitor, notice }: { codes: readonly string[] | null; visitor: Visitor; notice: string },
): PageAnswer {
  if (!codes) return returnWith(notice)
  return buildPage({ brand: deps.brand, ...buildRecoveryCodesPage(deps, { codes, ...visitor }) })
}

async function refuseCode(
  deps: SecurityPageDeps,
  db: Database,
  refused: { problem: Problem; errors: readonly FormError[]; visitor: Visitor; userId: UserId },
): Promise<RefusalOutcome> {
  const { problem, errors, visitor, userId } = refused
  const enrolled = await findEnrolled(deps, db, userId)
  const page = enrolled
    ? buildAppPage(deps, { enrolled, errors, ...visitor })
    : renderError({ code: 'conflict', texts: visitor.texts, requestId: undefined, continuation: TO_SECURITY })
  return refusePage(deps, { problem, page, target: userId })
}

const TO_SECURITY = { href: SECURITY, label: 'security.title' } as const

/** The authenticator app and the recovery codes of a user (docs/contract/pages.md#sign-in-and-security). */
export const securityRoutes: Routes<SecurityPageDeps> = [
  defineUserPage(
    { path: SECURITY, resource: 'security-page', summary: 'The second factors of the user', query: ['notice'] },
    async (deps: SecurityPageDeps, { db, user, visitor, query, now }) => {
      const { userId } = user
      const { count } = await findFactors(db, userId)
      const passkeys = await listPasskeys(db, userId)
      const isLastWay = passkeys.length === 1 && !(await findOtherWay(db, { userId }))
      const notice = findNotice(visitor.texts, NOTICES, query.notice)
      const view = { count, passkeys, isLastWay, ...visitor, notice, now }
      return buildPage({ brand: deps.brand, ...buildSecurityPage(deps, view) })
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${SECURITY}/app`,
      resource: 'totp-factor',
      action: 'create',
      fresh: 'sign-in',
      returnTo: RETURN,
      summary: 'Enrol an authenticator app with the form',
    },
    async (deps: SecurityPageDeps, { db, user, visitor, now }) => {
      const { userId } = user
      const enrolled = await enrolAuthenticator(deps, db, { userId, now })
      return {
        ...buildPage({ brand: deps.brand, ...buildAppPage(deps, { enrolled, ...visitor }) }),
        changed: [{ id: enrolled.factor.id, account: null, url: null }],
      }
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${SECURITY}/app/confirm`,
      resource: 'totp-factor',
      action: 'confirm',
      fresh: 'sign-in',
      returnTo: RETURN,
      summary: 'Confirm an authenticator app with the form',
      fields: { code: 64 },
    },
    {
      prepare: async (_deps: SecurityPageDeps, { db, user, form, address, now }) => {
        if (form.code.trim() === '') return undefined
        const attempt = { userId: user.userId, address, now }
        return { attempt, until: await chargeFactorAttempt(db, attempt) }
      },
      handle: async (deps, { db, user, visitor, form, now, prepared }) => {
        const { userId } = user
        const { texts } = visitor
        if (!prepared) return refuseCode(deps, db, { ...buildCodeMissing(texts), visitor, userId })
        const { attempt, until } = prepared
        const confirmed = until
          ? { problem: buildThrottled(until, now) }
          : await confirmAuthenticator(deps, db, { userId, code: form.code, now })
        if ('problem' in confirmed) {
          const { problem } = confirmed
          const text = problem.errors ? texts.say('proof.code-wrong') : describeLoginProblem(texts, problem)
          return refuseCode(deps, db, { problem, errors: [{ field: 'code', text }], visitor, userId })
        }
        const cookies = await raise(deps, db, { user, methods: ['otp'], now })
        await forgiveFactorAttempt(db, attempt)
        return {
          ...answerNewFactor(deps, { codes: confirmed.recoveryCodes, visitor, notice: 'app-added' }),
          cookies,
          changed: [{ id: confirmed.id, account: null, url: null }],
        } as PageAnswer
      },
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${SECURITY}/app/remove`,
      resource: 'totp-factor',
      action: 'delete',
      fresh: 'factor',
      returnTo: RETURN,
      summary: 'Remove the authenticator app with the form',
    },
    async (_deps: SecurityPageDeps, { db, user, now }) => {
      const id = await removeAuthenticator(db, { userId: user.userId, now })
      return { ...returnWith('app-removed'), changed: [{ id, account: null, url: null }] }
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${SECURITY}/recovery-codes`,
      resource: 'recovery-code',
      action: 'renew',
      fresh: 'factor',
      returnTo: RETURN,
      summary: 'Replace the recovery codes with the form',
    },
    async (deps: SecurityPageDeps, { db, user, visitor, now }) => {
      const { userId } = user
      const codes = await renewRecoveryCodes(deps, db, { userId, now })
      return {
        ...buildPage({ brand: deps.brand, ...buildRecoveryCodesPage(deps, { codes, ...visitor }) }),
        changed: [{ id: userId, account: null, url: null }],
      }
    },
  ),
]
