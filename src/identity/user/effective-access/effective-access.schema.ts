import { enumSchema, namedObject, nullable, UuidSchema } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import type { HeldRole } from './effective-access.store.ts'
import type { EffectiveAccess } from './effective-access.ts'

const HeldRoleSchema = namedObject('HeldRole', {
  document_id: UuidSchema,
  name: Type.String(),
  permissions: Type.Array(Type.String({ description: 'Patterns.' })),
  is_account_scoped: Type.Boolean(),
  requires_second_factor: Type.Boolean(),
})

const ReasonSchema = namedObject('PermissionReason', {
  role: UuidSchema,
  role_name: Type.String(),
  pattern: Type.String({ description: 'The pattern of the role that covers the permission.' }),
  place: enumSchema(['everywhere', 'accounts', 'memberships'], {
    description:
      '`everywhere`; `accounts`: by an account-scoped role of the user, in each of its accounts; `memberships`: by a role of these memberships.',
  }),
  accounts: Type.Array(UuidSchema, { description: 'Where it holds; empty for `everywhere`.' }),
  requires_second_factor: Type.Boolean({
    description: 'Whether only sessions with a second factor hold it by this role.',
  }),
})

/** Effective permissions of a user, with their reasons. */
export const EffectiveAccessRow = namedObject('EffectiveAccess', {
  roles: Type.Array(HeldRoleSchema, { description: 'The roles of the user.' }),
  memberships: Type.Array(
    namedObject('HeldMembership', {
      account: UuidSchema,
      name: Type.String(),
      roles: Type.Array(HeldRoleSchema),
      connection: nullable(
        Type.String({
          format: 'uuid',
          description:
            'The connection that proves a session of the user before it reaches the account. Null where none does.',
        }),
      ),
    }),
    { description: 'The accounts of the user, the oldest membership first; at most 100.' },
  ),
  is_complete: Type.Boolean({ description: 'Whether the user belongs to no further account.' }),
  permissions: Type.Array(
    namedObject('EffectivePermission', {
      permission: Type.String(),
      reasons: Type.Array(ReasonSchema, { minItems: 1 }),
    }),
    { description: 'Those that have an effect.' },
  ),
})

const toHeldRole = (role: HeldRole): Static<typeof HeldRoleSchema> => ({
  document_id: role.id,
  name: role.name,
  permissions: role.patterns,
  is_account_scoped: role.isAccountScoped,
  requires_second_factor: role.requiresSecondFactor,
})

/** Maps the permissions of a user for the wire. */
export function toEffectiveAccessRow(access: EffectiveAccess): Static<typeof EffectiveAccessRow> {
  return {
    roles: access.roles.map(toHeldRole),
    memberships: access.memberships.map(({ account, name, roles, connection }) => ({
      account,
      name,
      roles: roles.map(toHeldRole),
      connection,
    })),
    is_complete: access.isComplete,
    permissions: access.permissions.map(({ permission, reasons }) => ({
      permission,
      reasons: reasons.map((reason) => ({
        role: reason.role,
        role_name: reason.roleName,
        pattern: reason.pattern,
        place: reason.place,
        accounts: reason.accounts,
        requires_second_factor: reason.requiresSecondFactor,
      })),
    })),
  }
}
