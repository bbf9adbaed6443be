import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { IdParams } from '../../../http/route/schema.ts'
import { endUserApiKeys } from '../../access/api-key.ts'
import { checkMayManageUser } from '../../access/delegation.ts'
import { endUserAccess } from '../../session/session.ts'
import { EndTokensBody } from '../../user/user.schema.ts'
import { loadManagedUser, loadUser } from '../../user/user.ts'
import { RemovedFactorRow } from './second-factor.schema.ts'
import { removeAllFactors } from './second-factor.ts'

/** Help for a user who lost its second factor (docs/contract/second-factor.md#lost-factors). */
export const factorRemovalRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/identity/user/{id}/remove-factors',
      resource: 'user',
      action: 'remove-factors',
      accountScope: 'none',
      fresh: 'factor',
      summary: 'Remove the second factors of a user',
      description:
        'For a user who lost the device and the recovery codes. Removes every authenticator app, passkey and recovery code and clears the throttle of codes. Ends the sessions and apps of the user and, unless `keep_api_keys` is true, its API keys. The caller must hold everything that the user holds.',
      params: IdParams,
      body: EndTokensBody,
      data: RemovedFactorRow,
    },
    {
      row: { find: (_deps: object, { db, params }) => loadUser(db, params.id), neededBy: 'validation' },
      handle: async (_deps, { db, params, body, caller, now }) => {
        const target = await loadManagedUser(db, params.id)
        checkMayManageUser(caller, target.holdings)
        await removeAllFactors(db, { userId: target.id, now })
        await endUserAccess(db, { userId: target.id, now })
        if (!body?.keep_api_keys) await endUserApiKeys(db, { userId: target.id, now })
        return {
          data: { document_id: target.id },
          message: 'Second factors removed.',
          changed: [{ id: target.id, account: null }],
        }
      },
    },
  ),
]
