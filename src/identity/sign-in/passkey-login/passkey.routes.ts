import { rowFields } from '../../../http/listing/listing.ts'
import { buildWholeList } from '../../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { defineList } from '../../../http/route/row-route.ts'
import { IdParams } from '../../../http/route/schema.ts'
import { NO_STORE } from '../../session/session.routes.ts'
import { raiseSession } from '../../session/session-proof.ts'
import { loadUser } from '../../user/user.ts'
import {
  CreatedPasskeyRow,
  CreatePasskeyBody,
  CreationOptions,
  PasskeyRow,
  toRegistration,
} from '../passkey/passkey.schema.ts'
import { selectPasskeys, toPasskeyRow } from '../passkey/passkey.store.ts'
import { methodOf } from '../passkey/passkey.ts'
import { type FactorDeps, readUserSession } from '../second-factor/second-factor.ts'
import { askForNewPasskey, registerPasskey, removePasskey } from './passkey-registration.ts'

const PASSKEY_FIELDS = rowFields({
  name: { type: 'text', sortable: true, like: 'few-rows' },
})

const OF_PASSKEY = { resource: 'passkey', accountScope: 'none', access: 'caller', data: PasskeyRow } as const

/** The passkeys of the caller (docs/contract/second-factor.md#passkeys). */
export const passkeyRoutes: Routes<FactorDeps> = [
  defineRoute(
    {
      ...OF_PASSKEY,
      method: 'POST',
      path: '/api/v3/auth/factor/passkey/options',
      action: 'begin',
      event: 'none',
      fresh: 'sign-in',
      strictRateLimit: true,
      summary: 'Begin to register a passkey',
      data: CreationOptions,
      problems: ['conflict', 'limit_reached'],
    },
    async (deps: FactorDeps, { db, caller, address, now }) => {
      const sessionId = readUserSession(caller)
      const { email, name } = await loadUser(db, caller.userId)
      const options = await askForNewPasskey(deps, db, {
        userId: caller.userId,
        sessionId,
        email,
        name,
        address,
        now,
      })
      return { data: { options }, message: 'Create the passkey in the browser.', headers: NO_STORE }
    },
  ),
  defineRoute(
    {
      ...OF_PASSKEY,
      method: 'POST',
      path: '/api/v3/auth/factor/passkey',
      action: 'create',
      fresh: 'sign-in',
      strictRateLimit: true,
      status: 201,
      summary: 'Register a passkey',
      description:
        'Takes the answer of the browser to the options, once, within 5 minutes and in the same session. With the first factor of a user, the answer has ten recovery codes. The session counts as one with a second factor.',
      body: CreatePasskeyBody,
      data: CreatedPasskeyRow,
      problems: ['conflict', 'limit_reached'],
    },
    async (deps: FactorDeps, { db, body, caller, address, now }) => {
      const { userId } = caller
      const sessionId = readUserSession(caller)
      const credential = toRegistration(body.credential)
      const user = { userId, sessionId, address, now }
      const result = await registerPasskey(deps, db, { ...user, name: body.name, credential })
      if ('problem' in result) return { kind: 'refusal', problem: result.problem, target: userId }
      const { passkey, recoveryCodes } = result
      await raiseSession(db, { sessionId, methods: [methodOf(passkey)], now })
      return {
        data: { ...toPasskeyRow(passkey), recovery_codes: recoveryCodes },
        message: 'Passkey registered.',
        headers: NO_STORE,
        changed: [{ id: passkey.id, account: null, url: null }],
      }
    },
  ),
  defineList(
    {
      ...OF_PASSKEY,
      path: '/api/v3/auth/factor/passkey',
      summary: "List the caller's own passkeys",
      list: PASSKEY_FIELDS,
      problems: ['conflict'],
    },
    {
      rows: ({ db, caller }) => {
        readUserSession(caller)
        return buildWholeList(selectPasskeys(db, caller.userId))
      },
      toRow: toPasskeyRow,
      message: 'Passkeys.',
    },
  ),
  defineRoute(
    {
      ...OF_PASSKEY,
      method: 'DELETE',
      path: '/api/v3/auth/factor/passkey/{id}',
      action: 'delete',
      fresh: 'factor',
      strictRateLimit: true,
      summary: 'Remove a passkey',
      params: IdParams,
      problems: ['conflict'],
    },
    async (_deps: FactorDeps, { db, params, caller, now }) => {
      readUserSession(caller)
      const removed = await removePasskey(db, { id: params.id, userId: caller.userId, now })
      return {
        data: toPasskeyRow(removed),
        message: 'Passkey removed.',
        changed: [{ id: removed.id, account: null, url: null }],
      }
    },
  ),
]
