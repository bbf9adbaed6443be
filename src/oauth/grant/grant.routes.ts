import { readPage } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { IdParams, named, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { findOwners } from '../../identity/access/own-rows.ts'
import { ScopeSchema } from '../client/client.schema.ts'
import { selectEngineGrants } from './engine-grant.store.ts'
import { grant, type NamedGrant, selectGrants } from './grant.store.ts'
import { type GrantDeps, loadOwnGrant, revokeGrant } from './grant.ts'

/** A grant as the API shows it. */
const GrantRow = named(
  'OauthGrant',
  Type.Object({
    document_id: UuidSchema,
    user: UuidSchema,
    client: UuidSchema,
    client_name: Type.String(),
    publisher: nullable(Type.String()),
    scopes: Type.Array(ScopeSchema),
    created_at: TimestampSchema,
    updated_at: TimestampSchema,
  }),
)

const GRANT_FIELDS = {
  document_id: { type: 'uuid' },
  user: { type: 'uuid' },
  client: { type: 'uuid' },
  created_at: { type: 'timestamp', sortable: true },
  updated_at: { type: 'timestamp', sortable: true },
} as const

const toStoredRow = wireOf(grant, GrantRow)
const toGrantRow = (named: NamedGrant) => ({
  ...toStoredRow(named),
  client_name: named.clientName,
  publisher: named.publisher,
})

/** Grants of users to apps (docs/contract/oauth.md#grants). */
export const grantRoutes: Routes<GrantDeps> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/oauth/grant',
      resource: 'oauth-grant',
      action: 'find-all',
      accountScope: 'none',
      access: 'caller',
      opensAll: true,
      summary: 'List what users allow OAuth clients to do',
      description: "The caller's own grants; with the permission `oauth-grant:find-all` those of all users.",
      data: GrantRow,
      problems: ['permission_denied'],
      list: GRANT_FIELDS,
    },
    {
      handle: async ({ isManaged }: GrantDeps, { db, caller, permission, listing }) => {
        const owners = findOwners(caller, permission)
        const base = isManaged ? selectEngineGrants(db, owners) : selectGrants(db, owners)
        const page = await readPage(db, base as ReturnType<typeof selectGrants>, {
          listing,
          fields: GRANT_FIELDS,
          source: { table: 'g' },
          toRow: toGrantRow,
        })
        return { ...page, message: 'Grants.' }
      },
    },
  ),
  defineRoute(
    {
      method: 'DELETE',
      path: '/api/v3/oauth/grant/{id}',
      resource: 'oauth-grant',
      action: 'delete',
      accountScope: 'none',
      access: 'caller',
      opensAll: true,
      summary: 'Revoke a grant, with every token that rests on it, at once',
      description: "The caller's own grant; with the permission `oauth-grant:delete` any user's.",
      params: IdParams,
      data: GrantRow,
      problems: ['permission_denied'],
    },
    {
      row: {
        find: (deps: GrantDeps, { db, params, caller, permission }) =>
          loadOwnGrant(deps, db, { id: params.id, caller, permission }),
        neededBy: 'validation',
      },
      handle: async (deps, { db, params, caller, permission, now }) => {
        const revoked = await revokeGrant(deps, db, { id: params.id, caller, permission, now })
        return {
          data: toGrantRow(revoked),
          message: 'Access removed.',
          changed: [{ id: revoked.id, account: null, url: null }],
          audit: { client: revoked.clientId, user: revoked.userId },
        }
      },
    },
  ),
]
