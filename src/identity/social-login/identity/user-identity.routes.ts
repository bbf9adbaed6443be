import { readPage } from '../../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { IdParams, named, UuidSchema } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { Engine } from '../../engine/engine.ts'
import { loadUser } from '../../user/user.ts'
import { IdentityRow, toIdentityRow } from '../social-login.schema.ts'
import { type IdentityRecord, selectIdentities } from '../user/identity.store.ts'
import { loadIdentityOfUser, unlinkIdentityOfUser } from './identity.ts'

const IDENTITY_FIELDS = {
  document_id: { type: 'uuid' },
  created_at: { type: 'timestamp', sortable: true },
  updated_at: { type: 'timestamp', sortable: true },
} as const

const UserIdentityRow = named(
  'UserIdentity',
  Type.Object({
    ...IdentityRow.properties,
    user: UuidSchema,
    subject: Type.String({ description: 'The id of the user at the provider.' }),
  }),
)

const IdentityParams = Type.Object({ id: UuidSchema, identity: UuidSchema })

function toUserIdentityRow(record: IdentityRecord): Static<typeof UserIdentityRow> {
  return { ...toIdentityRow(record), user: record.userId, subject: record.subject }
}

/** The identities of any user, for operators (docs/contract/social-login.md#identities-of-others). */
export const userIdentityRoutes: Routes<{ engine: Engine }> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/identity/user/{id}/identity',
      resource: 'user-identity',
      action: 'find-all',
      accountScope: 'none',
      summary: 'List the identities of a user at sign-in providers',
      params: IdParams,
      data: UserIdentityRow,
      list: IDENTITY_FIELDS,
    },
    {
      row: { find: (_deps: { engine: Engine }, { db, params }) => loadUser(db, params.id), neededBy: 'validation' },
      handle: async (_deps, { db, params, listing }) => {
        const user = { id: params.id }
        const page = await readPage(db, selectIdentities(db, user.id as IdentityRecord['userId']), {
          listing,
          fields: IDENTITY_FIELDS,
          toRow: toUserIdentityRow,
        })
        // A row proves that the user exists; only an empty list needs a check.
        if (page.data.length === 0) await loadUser(db, user.id)
        return { ...page, message: 'Identities of the user.' }
      },
    },
  ),
  defineRoute(
    {
      method: 'DELETE',
      path: '/api/v3/identity/user/{id}/identity/{identity}',
      resource: 'user-identity',
      action: 'delete',
      accountScope: 'none',
      fresh: 'factor',
      summary: 'Disconnect a provider from a user',
      description:
        'Never the last way to sign in: a password, a passkey or another enabled provider has to remain. Open sessions go on. The caller must hold everything that the user holds.',
      params: IdentityParams,
      data: UserIdentityRow,
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
