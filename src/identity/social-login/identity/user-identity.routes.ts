import { rowFields } from '../../../http/listing/listing.ts'
import { buildWholeList } from '../../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { defineList } from '../../../http/route/row-route.ts'
import { IdParams, namedObject, UuidSchema } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { Engine } from '../../engine/engine.ts'
import { loadUser } from '../../user/user.ts'
import { IdentityRow, toIdentityRow } from '../social-login.schema.ts'
import { type IdentityRecord, selectIdentities } from '../user/identity.store.ts'
import { loadIdentityOfUser, unlinkIdentityOfUser } from './identity.ts'

const IDENTITY_FIELDS = rowFields({})

const UserIdentityRow = namedObject('UserIdentity', {
  ...IdentityRow.properties,
  user: UuidSchema,
  subject: Type.String({ description: 'The id of the user at the provider.' }),
})

const IdentityParams = Type.Object({ id: UuidSchema, identity: UuidSchema })

function toUserIdentityRow(record: IdentityRecord): Static<typeof UserIdentityRow> {
  return { ...toIdentityRow(record), user: record.userId, subject: record.subject }
}

const OF_USER_IDENTITY = { resource: 'user-identity', accountScope: 'none', data: UserIdentityRow } as const

/** The identities of any user, for operators (docs/contract/social-login.md#identities-of-others). */
export const userIdentityRoutes: Routes<{ engine: Engine }> = [
  defineList(
    {
      ...OF_USER_IDENTITY,
      path: '/api/v3/identity/user/{id}/identity',
      summary: 'List the identities of a user at sign-in providers',
      params: IdParams,
      list: IDENTITY_FIELDS,
    },
    {
      loadParent: ({ db, params }) => loadUser(db, params.id),
      rows: ({ db, params }) => buildWholeList(selectIdentities(db, params.id as IdentityRecord['userId'])),
      toRow: toUserIdentityRow,
      message: 'Identities of the user.',
    },
  ),
  defineRoute(
    {
      ...OF_USER_IDENTITY,
      method: 'DELETE',
      path: '/api/v3/identity/user/{id}/identity/{identity}',
      action: 'delete',
      fresh: 'factor',
      summary: 'Disconnect a provider from a user',
      description:
        'Never the last way to sign in: a password, a passkey or another enabled provider has to remain. Open sessions stay valid. The caller must hold everything that the user holds.',
      params: IdentityParams,
      problems: ['conflict'],
    },
    {
      row: {
        find: (_deps: { engine: Engine }, { db, params }: { db: Database; params: Static<typeof IdentityParams> }) =>
          loadIdentityOfUser(db, { id: params.identity, user: params.id }),
        neededBy: 'validation',
      },
      handle: async (deps, { db, params, caller }) => {
        const identity = await unlinkIdentityOfUser(deps, db, { id: params.identity, user: params.id, caller })
        return {
          data: toUserIdentityRow(identity),
          message: 'Provider disconnected.',
          changed: [{ id: identity.id, account: null, url: null }],
          audit: { provider: identity.provider, user: identity.userId },
        }
      },
    },
  ),
]
