import { isUuid } from '../../../base/id.ts'
import { notFound } from '../../../http/problem/problem.ts'
import type { Routes } from '../../../http/route/route.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { toRegistration } from '../../sign-in/passkey/passkey.schema.ts'
import { methodOf } from '../../sign-in/passkey/passkey.ts'
import {
  askForNewPasskey,
  registerPasskey,
  removePasskey,
  renameOwnPasskey,
} from '../../sign-in/passkey-login/passkey-registration.ts'
import { loadUser } from '../../user/user.ts'
import type { SignedInUser, Visitor } from '../browser/browser-session.ts'
import { buildPage, type PageBody } from '../frame/page.ts'
import { type PageAnswer, refusePage, showProblem } from '../frame/page-route.ts'
import { defineUserPage } from '../frame/user-page.ts'
import { CREDENTIAL_LIMIT, readNewCredential } from '../sign-in/passkey-form.ts'
import { answerNewFactor, RETURN, raise, returnWith, type SecurityPageDeps } from './security.routes.ts'
import { buildNewPasskeyPage, SECURITY } from './security-page.ts'

const NAME_LIMIT = 100

/** A name on one line; a passkey without one is called `Passkey`. */
function readName(text: string): string {
  return (
    text
      .replace(/\p{Cc}/gu, ' ')
      .trim()
      .slice(0, NAME_LIMIT) || 'Passkey'
  )
}

async function askBrowser(
  deps: SecurityPageDeps,
  db: Database,
  request: { user: SignedInUser; visitor: Visitor; error?: string; address: string; now: Date },
): Promise<PageBody> {
  const { user, visitor, error, address, now } = request
  const { userId, sessionId } = user
  const { email, name } = await loadUser(db, userId)
  const options = await askForNewPasskey(deps, db, { userId, sessionId, email, name, address, now })
  return buildNewPasskeyPage(deps, { options, ...visitor, ...(error && { errors: [{ text: error }] }) })
}

/** The passkeys of a user (docs/contract/pages.md#sign-in-and-security). */
export const passkeyPageRoutes: Routes<SecurityPageDeps> = [
  defineUserPage(
    {
      method: 'POST',
      path: `${SECURITY}/passkey/begin`,
      resource: 'passkey',
      action: 'begin',
      event: 'none',
      fresh: 'sign-in',
      returnTo: RETURN,
      summary: 'The form for a new passkey',
    },
    async (deps: SecurityPageDeps, { db, user, visitor, address, now }) => {
      const page = await askBrowser(deps, db, { user, visitor, address, now })
      return buildPage({ brand: deps.brand, ...page })
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${SECURITY}/passkey`,
      resource: 'passkey',
      action: 'create',
      fresh: 'sign-in',
      returnTo: RETURN,
      summary: 'Register a passkey with the form',
      fields: { name: NAME_LIMIT, credential: CREDENTIAL_LIMIT },
    },
    async (deps: SecurityPageDeps, { db, user, visitor, form, address, now }) => {
      const { userId, sessionId } = user
      const credential = toRegistration(readNewCredential(form.credential))
      const asked = { userId, sessionId, address, now }
      const result = await registerPasskey(deps, db, { ...asked, name: readName(form.name), credential })
      if ('problem' in result) {
        const error = visitor.texts.say('passkey.not-added')
        const page = await askBrowser(deps, db, { user, visitor, error, address, now })
        return refusePage(deps, { problem: result.problem, page, target: userId })
      }
      const { passkey, recoveryCodes } = result
      const cookies = await raise(deps, db, { user, methods: [methodOf(passkey)], now })
      return {
        ...answerNewFactor(deps, { codes: recoveryCodes, visitor, notice: 'passkey-added' }),
        cookies,
        changed: [{ id: passkey.id, account: null, url: null }],
      } as PageAnswer
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${SECURITY}/passkey/rename`,
      resource: 'passkey',
      action: 'rename',
      event: 'none',
      returnTo: SECURITY,
      summary: 'Rename a passkey with the form',
      fields: { id: 36, name: NAME_LIMIT },
    },
    async (deps: SecurityPageDeps, { db, user, visitor, form, now, requestId }) => {
      if (!isUuid(form.id)) return showProblem(deps, notFound('passkey'), { requestId, visitor })
      await renameOwnPasskey(db, { id: form.id, userId: user.userId, name: readName(form.name), now })
      return returnWith('passkey-renamed')
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${SECURITY}/passkey/remove`,
      resource: 'passkey',
      action: 'delete',
      fresh: 'factor',
      returnTo: RETURN,
      summary: 'Remove a passkey with the form',
      fields: { id: 36 },
    },
    async (deps: SecurityPageDeps, { db, user, visitor, form, now, requestId }) => {
      if (!isUuid(form.id)) return showProblem(deps, notFound('passkey'), { requestId, visitor })
      const removed = await removePasskey(db, { id: form.id, userId: user.userId, now })
      return { ...returnWith('passkey-removed'), changed: [{ id: removed.id, account: null, url: null }] }
    },
  ),
]
