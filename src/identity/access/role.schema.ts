import { lineSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { PATTERN_PATTERN } from './pattern.ts'

/** Permissions as a role or a key holds them. */
export const PatternsSchema = Type.Array(
  Type.String({ maxLength: 200, pattern: PATTERN_PATTERN, description: '`resource:action`, `resource:*` or `*:*`.' }),
  { maxItems: 500, uniqueItems: true },
)

const AccountScopedSchema = Type.Boolean({
  description: 'Whether its permissions hold in the accounts of the user only. Default false.',
})

const RequiresSecondFactorSchema = Type.Boolean({
  description: 'Whether only sessions in which a second factor was proven hold it. Default false.',
})

/** A role as the API shows it. */
export const RoleRow = namedObject('Role', {
  document_id: UuidSchema,
  name: Type.String(),
  description: nullable(Type.String()),
  permissions: Type.Array(Type.String()),
  is_system: Type.Boolean({ description: 'Maintained by the service; cannot be changed or deleted.' }),
  is_account_scoped: Type.Boolean(),
  requires_second_factor: Type.Boolean(),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

export const CreateRoleBody = namedObject('CreateRole', {
  name: lineSchema(100),
  description: Type.Optional(nullable(Type.String({ maxLength: 500 }))),
  permissions: PatternsSchema,
  is_account_scoped: Type.Optional(AccountScopedSchema),
  requires_second_factor: Type.Optional(RequiresSecondFactorSchema),
})

export const UpdateRoleBody = namedObject(
  'UpdateRole',
  {
    name: Type.Optional(lineSchema(100)),
    description: Type.Optional(nullable(Type.String({ maxLength: 500 }))),
    permissions: Type.Optional(PatternsSchema),
    is_account_scoped: Type.Optional(AccountScopedSchema),
    requires_second_factor: Type.Optional(RequiresSecondFactorSchema),
  },
  { minProperties: 1 },
)

/** A permission as the API shows it. */
export const PermissionRow = namedObject('Permission', {
  name: Type.String({ description: '`resource:action`' }),
  description: nullable(Type.String()),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})
