import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineList, defineRow } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { listPermissions, PERMISSION_FIELDS, toPermissionRow } from './permission.store.ts'
import { CreateRoleBody, PermissionRow, RoleRow, UpdateRoleBody } from './role.schema.ts'
import { selectRoles, toRoleRow } from './role.store.ts'
import { changeRole, createRole, deleteRole, loadRole, loadRoleOfHolders, type RoleDeps } from './role.ts'

const ROLE_FIELDS = rowFields({
  name: { type: 'text', sortable: true, like: 'few-rows' },
  is_system: { type: 'boolean' },
  is_account_scoped: { type: 'boolean' },
  requires_second_factor: { type: 'boolean' },
})

const role = defineRow(
  {
    resource: 'role',
    path: '/api/v3/identity/role/{id}',
    accountScope: 'none',
    rowTag: ['name', 'description', 'permissions', 'is_account_scoped', 'requires_second_factor'],
    params: IdParams,
    data: RoleRow,
  },
  { noun: 'Role', load: ({ db, params }) => loadRole(db, params.id), toRow: toRoleRow },
)

/** Roles, and the permissions they may hold (docs/contract/identity.md#tables, docs/contract/identity.md#system-roles). */
export const roleRoutes: Routes<RoleDeps> = [
  role.create(
    {
      summary: 'Create a role',
      description:
        'The caller must hold everything that the role holds, everywhere. An account-scoped role takes only permissions that some route takes for one account (422 `no_effect_in_scope`).',
      body: CreateRoleBody,
    },
    async (deps, { db, body, caller, now }) => ({
      row: await createRole(deps, db, {
        name: body.name,
        description: body.description ?? null,
        patterns: body.permissions,
        isAccountScoped: body.is_account_scoped ?? false,
        requiresSecondFactor: body.requires_second_factor ?? false,
        caller,
        now,
      }),
    }),
  ),
  role.list(
    { summary: 'List roles', list: ROLE_FIELDS },
    { rows: ({ db }) => buildWholeList(selectRoles(db)), message: 'Roles.' },
  ),
  role.read({ summary: 'Read one role' }),
  role.update(
    {
      fresh: 'factor',
      summary: 'Change a role',
      description:
        'The caller must hold everything that the role holds before and after. The change takes effect with the next request of every user who has the role.',
      body: UpdateRoleBody,
      problems: ['conflict'],
    },
    async (deps, { db, params, body, caller, now }) => {
      const isLimited = body.is_account_scoped === true
      const before = await (isLimited ? loadRoleOfHolders(db, params.id) : loadRole(db, params.id, { lock: true }))
      const changed = await changeRole(deps, db, {
        role: before,
        ...(body.name !== undefined && { name: body.name }),
        ...(body.description !== undefined && { description: body.description }),
        ...(body.permissions !== undefined && { patterns: body.permissions }),
        ...(body.is_account_scoped !== undefined && { isAccountScoped: body.is_account_scoped }),
        ...(body.requires_second_factor !== undefined && { requiresSecondFactor: body.requires_second_factor }),
        caller,
        now,
      })
      return { row: changed ?? before, before, isChanged: changed !== undefined }
    },
  ),
  role.delete(
    {
      summary: 'Delete a role',
      description: 'The caller must hold everything that the role holds.',
      problems: ['conflict'],
    },
    {
      row: { find: (_deps: RoleDeps, { db, params }) => loadRoleOfHolders(db, params.id), neededBy: 'handle' },
      handle: async (_deps, { db, target, caller, now }) => {
        await deleteRole(db, { role: target, caller, now })
        return { row: target }
      },
    },
  ),
  defineList(
    {
      path: '/api/v3/identity/permission',
      resource: 'permission',
      summary: 'List permissions',
      description: 'One for each route. Roles and keys may also hold `resource:*` and `*:*`.',
      data: PermissionRow,
      list: PERMISSION_FIELDS,
    },
    { rows: ({ db }) => listPermissions(db), toRow: toPermissionRow, message: 'Permissions.' },
  ),
]
