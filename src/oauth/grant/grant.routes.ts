import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList } from '../../http/route/row-route.ts'
import { IdParams, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { findOwners } from '../../identity/access/own-rows.ts'
import { ScopeSchema } from '../client/client.schema.ts'
import { selectEngineGrants } from './engine-grant.store.ts'
import { grant, type NamedGrant, selectGrants } from './grant.store.ts'
import { type GrantDeps, loadOwnGrant, revokeGrant } from './grant.ts'

/** A grant as the API shows it. */
const GrantRow = namedObject('OauthGrant', {
  document_id: UuidSchema,
  user: UuidSchema,
  client: UuidSchema,
  client_name: Type.String(),
  publisher: nullable(Type.String()),
  scopes: Type.Array(ScopeSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

const GRANT_FIELDS = rowFields({
  user: { type: 'uuid' },
  client: { type: 'uuid' },
})

const toStoredRow = wireOf(grant, GrantRow)
const toGrantRow = (named: NamedGrant) => ({
  ...toStoredRow(named),
  client_name: named.clientName,
  publisher: named.publisher,
})

const OF_OAUTH_GRANT = {
  resource: 'oauth-grant',
  accountScope: 'none',
  access: 'caller',
  opensAll: true,
  data: GrantRow,
} as const

/** Grants of users to apps (docs/contract/oauth.md#grants). */
export const grantRoutes: Routes<GrantDeps> = [
  defineList(
    {
      ...OF_OAUTH_GRANT,
      path: '/api/v3/oauth/grant',
      summary: 'List the grants of users to OAuth clients',
      description: "The caller's own grants; with the permission `oauth-grant:find-all` those of all users.",
      problems: ['permission_denied'],
      list: GRANT_FIELDS,
    },
    {
      rows: ({ db, caller, permission }, { isManaged }: GrantDeps) => {
        const owners = findOwners(caller, permission)
        const grants = isManaged ? selectEngineGrants(db, owners) : selectGrants(db, owners)
        return buildWholeList(grants as ReturnType<typeof selectGrants>, { table: 'g' })
      },
      toRow: toGrantRow,
      message: 'Grants.',
    },
  ),
  defineRoute(
    {
      ...OF_OAUTH_GRANT,
      method: 'DELETE',
      path: '/api/v3/oauth/grant/{id}',
      action: 'delete',
      summary: 'Revoke a grant and its tokens, at once',
      description: "The caller's own grant; with the permission `oauth-grant:delete` any user's.",
      params: IdParams,
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
