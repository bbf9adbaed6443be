import { buildWholeList } from '../../http/listing/page.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineList } from '../../http/route/row-route.ts'
import { enumSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { loadUser } from '../../identity/user/user.ts'
import { OF_LOG } from './audit.schema.ts'
import { type SignIn, selectSignIns, signIn } from './sign-in-log.store.ts'

const SignInRow = namedObject('SignIn', {
  document_id: UuidSchema,
  method: Type.String({
    description:
      'Method: `local` by password, `sign-up`, `mail` by link or code, `factor` the second step, `passkey`, `oauth` a provider, `code` a deep link.',
  }),
  outcome: enumSchema(['success', 'failure']),
  reason: nullable(Type.String({ description: 'Why it was refused; null for a success.' })),
  provider: nullable(Type.String({ description: 'The provider of the sign-in.' })),
  session: nullable(UuidSchema),
  address: nullable(Type.String()),
  request_id: nullable(Type.String()),
  count: Type.Integer({ description: 'Number of equal refusals of one minute that the entry stands for.' }),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

const toStoredRow = wireOf(signIn, SignInRow)

function toSignInRow(entry: SignIn): Static<typeof SignInRow> {
  const { action, outcome, reason, provider } = entry
  return {
    ...toStoredRow(entry),
    method: action.slice(action.indexOf('.') + 1),
    outcome: outcome === 'success' ? 'success' : 'failure',
    reason,
    provider,
    updated_at: entry.createdAt.toISOString(),
  }
}

/** Sign-ins and refused sign-ins of a user (docs/contract/identity.md#sign-in-log). */
export const signInLogRoutes: Routes<object> = [
  defineList(
    {
      ...OF_LOG,
      path: '/api/v3/identity/user/{id}/sign-in',
      resource: 'user',
      action: 'find-sign-ins',
      summary: 'List the sign-ins of a user',
      description: 'Refused ones included, within the retention of the audit log.',
      data: SignInRow,
    },
    {
      loadParent: ({ db, params }) => loadUser(db, params.id),
      rows: ({ db, params }) => buildWholeList(selectSignIns(db, params.id), { table: 'l' }),
      toRow: toSignInRow,
      message: 'Sign-ins.',
    },
  ),
]
