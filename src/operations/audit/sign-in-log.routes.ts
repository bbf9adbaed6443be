import { buildWholeList } from '../../http/listing/page.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineList } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { loadUser } from '../../identity/user/user.ts'
import { SignInRow, toSignInRow } from './sign-in-log.schema.ts'
import { selectSignIns } from './sign-in-log.store.ts'

const SIGN_IN_FIELDS = { created_at: { type: 'timestamp', sortable: true } } as const

/** Sign-ins and refused sign-ins of a user (docs/contract/identity.md#sign-in-log). */
export const signInLogRoutes: Routes<object> = [
  defineList(
    {
      path: '/api/v3/identity/user/{id}/sign-in',
      resource: 'user',
      action: 'find-sign-ins',
      summary: 'List the sign-ins of a user',
      description: 'Refused ones included, within the retention of the audit log.',
      params: IdParams,
      data: SignInRow,
      list: SIGN_IN_FIELDS,
    },
    {
      loadParent: ({ db, params }) => loadUser(db, params.id),
      rows: ({ db, params }) => buildWholeList(selectSignIns(db, params.id), { table: 'l' }),
      toRow: toSignInRow,
      message: 'Sign-ins.',
    },
  ),
]
