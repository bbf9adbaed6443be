import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList, defineRead } from '../../http/route/row-route.ts'
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

/** Columns that a change can set. */
const SETTABLE = ['name', 'description', 'permissions', 'is_account_scoped', 'requires_second_factor'] as const

const OF_ROLE = { resource: 'role', accountScope: 'none', data: RoleRow } as const

/** Roles, and the permissions they may hold (docs/contract/identity.md#tables, docs/contract/identity.md#system-roles). */
export const roleRoutes: Routes<RoleDeps> = [
  defineRoute(
    {
      ...OF_ROLE,
      method: 'POST',
      path: '/api/v3/identity/role',
      action: 'create',
      status: 201,
      summary: 'Create a role',
      description:
        'The caller must hold everything that the role holds, everywhere. An account-scoped role takes only permissions that some route takes for one account (422 `no_effect_in_scope`).',
      body: CreateRoleBody,
    },
    async (deps: RoleDeps, { db, body, caller, now }) => {
      const role = await createRole(deps, db, {
        name: body.name,
        description: body.description ?? null,
        patterns: body.permissions,
        isAccountScoped: body.is_account_scoped ?? false,
        requiresSecondFactor: body.requires_second_factor ?? false,
        caller,
        now,
      })
      return {
        data: toRoleRow(role),
        message: 'Role created.',
        changed: [{ id: role.id, account: null }],
        location: `/api/v3/identity/role/${role.id}`,
      }
    },
  ),
  defineList(
    {
      ...OF_ROLE,
      path: '/api/v3/identity/role',
      summary: 'List roles',
      list: ROLE_FIELDS,
    },
    {
      rows: ({ db }) => buildWholeList(selectRoles(db)),
      toRow: toRoleRow,
      message: 'Roles.',
    },
  ),
  defineRead(
    {
      ...OF_ROLE,
      path: '/api/v3/identity/role/{id}',
      rowTag: SETTABLE,
      summary: 'Read one role',
      params: IdParams,
    },
    {
      load: ({ db, params }) => loadRole(db, params.id),
      toRow: toRoleRow,
      message: 'Role.',
      changedOf: (target) => [{ id: target.id, account: null }],
    },
  ),
  defineRoute(
    {
      ...OF_ROLE,
      method: 'PATCH',
      path: '/api/v3/identity/role/{id}',
      action: 'update',
      fresh: 'factor',
      rowTag: SETTABLE,
      summary: 'Change a role',
      description:
        'The caller must hold everything that the role holds before and after. The change takes effect with the next request of every user who has the role.',
      params: IdParams,
      body: UpdateRoleBody,
      problems: ['conflict'],
    },
    {
      row: { find: (_deps: RoleDeps, { db, params }) => loadRole(db, params.id), neededBy: 'validation' },
      handle: async (deps, { db, params, body, caller, now }) => {
        const isLimited = body.is_account_scoped === true
        const target = await (isLimited ? loadRoleOfHolders(db, params.id) : loadRole(db, params.id, { lock: true }))
        const changed = await changeRole(deps, db, {
          role: target,
          ...(body.name !== undefined && { name: body.name }),
          ...(body.description !== undefined && { description: body.description }),
          ...(body.permissions !== undefined && { patterns: body.permissions }),
          ...(body.is_account_scoped !== undefined && { isAccountScoped: body.is_account_scoped }),
          ...(body.requires_second_factor !== undefined && { requiresSecondFactor: body.requires_second_factor }),
          caller,
          now,
        })
        return {
          data: toRoleRow(changed ?? target),
          before: toRoleRow(target),
          message: changed ? 'Role updated.' : 'Role unchanged.',
          changed: changed ? [{ id: target.id, account: null }] : [],
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_ROLE,
      method: 'DELETE',
      path: '/api/v3/identity/role/{id}',
      action: 'delete',
      summary: 'Delete a role',
      description: 'The caller must hold everything that the role holds.',
      params: IdParams,
      problems: ['conflict'],
    },
    {
      row: { find: (_deps: RoleDeps, { db, params }) => loadRoleOfHolders(db, params.id), neededBy: 'handle' },
      handle: async (_deps, { db, target, caller, now }) => {
        await deleteRole(db, { role: target, caller, now })
        return { data: toRoleRow(target), message: 'Role deleted.', changed: [{ id: target.id, account: null }] }
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
