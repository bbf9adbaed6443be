import type { Routes } from '../../../http/route/route.ts'
import { defineList } from '../../../http/route/row-route.ts'
import { IdParams, namedObject, nullable, TimestampSchema, UuidSchema } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import { wireOf } from '../../../http/shape/wire-row.ts'
import { loadRole } from '../role.ts'
import { holder, listRoleHolders, type RoleHolder } from './role-holder.store.ts'

const HOLDER_FIELDS = { created_at: { type: 'timestamp', sortable: true } } as const

/** A user who has a role. */
const RoleHolderRow = namedObject('RoleHolder', {
  document_id: UuidSchema,
  user: UuidSchema,
  email: Type.String(),
  name: nullable(Type.String()),
  is_actived: Type.Boolean(),
  account: nullable(
    Type.String({
      format: 'uuid',
      description: 'The account of the membership that has the role; null for the user.',
    }),
  ),
  account_name: nullable(Type.String()),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

const toUserRow = wireOf(holder, RoleHolderRow)

function toRoleHolderRow(found: RoleHolder): Static<typeof RoleHolderRow> {
  const { id, userId, account, accountName } = found
  const since = found.createdAt.toISOString()
  const times = { created_at: since, updated_at: since }
  return { ...toUserRow(found), document_id: id, user: userId, account, account_name: accountName, ...times }
}

/** Holders of a role (docs/contract/identity.md#holders-of-a-role). */
export const roleHolderRoutes: Routes<object> = [
  defineList(
    {
      path: '/api/v3/identity/role/{id}/holder',
      resource: 'role',
      action: 'find-holders',
      summary: 'List who has a role',
      description:
        'Users that have the role, and memberships that have it in one account. `created_at` is the time of the assignment.',
      params: IdParams,
      data: RoleHolderRow,
      list: HOLDER_FIELDS,
    },
    {
      loadParent: ({ db, params }) => loadRole(db, params.id),
      rows: ({ db, params }) => listRoleHolders(db, params.id),
      toRow: toRoleHolderRow,
      message: 'Holders of the role.',
    },
  ),
]
