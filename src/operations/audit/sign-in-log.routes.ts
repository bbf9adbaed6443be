import { readPage } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { loadUser } from '../../identity/user/user.ts'
import { SignInRow, toSignInRow } from './sign-in-log.schema.ts'
import { selectSignIns } from './sign-in-log.store.ts'

const SIGN_IN_FIELDS = { created_at: { type: 'timestamp', sortable: true } } as const

/** Sign-ins and refused sign-ins of a user (docs/contract/identity.md#sign-in-log). */
export const signInLogRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/identity/user/{id}/sign-in',
      resource: 'user',
      action: 'find-sign-ins',
      accountScope: 'none',
      summary: 'List the sign-ins of a user',
      description: 'Also those that were refused, as far as the audit log goes back.',
      params: IdParams,
      data: SignInRow,
      list: SIGN_IN_FIELDS,
    },
    {
      row: { find: (_deps: object, { db, params }) => loadUser(db, params.id), neededBy: 'validation' },
      handle: async (_deps, { db, params, listing }) => {
        const page = await readPage(db, selectSignIns(db, params.id), {
          listing,
          fields: SIGN_IN_FIELDS,
          source: { table: 'l' },
          toRow: toSignInRow,
        })
        // A row proves that there was the user; only an empty list needs a check.
        if (page.data.length === 0) await loadUser(db, params.id)
        return { ...page, message: 'Sign-ins.' }
      },
    },
  ),
]
