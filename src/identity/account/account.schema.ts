import { lineSchema, namedObject, nullable, ROW_STAMPS, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'

/** An account as the API shows it. */
export const AccountRow = namedObject('Account', {
  document_id: UuidSchema,
  name: Type.String(),
  ...ROW_STAMPS,
})

export const CreateAccountBody = namedObject('CreateAccount', { name: lineSchema(200) })
export const UpdateAccountBody = namedObject('UpdateAccount', { name: lineSchema(200) })

/** A member as the API shows it. */
export const AccountMemberRow = namedObject('AccountMember', {
  document_id: UuidSchema,
  account: UuidSchema,
  user: UuidSchema,
  email: nullable(Type.String({ description: 'Null for a caller who does not hold `user:find-one`.' })),
  name: nullable(Type.String()),
  roles: Type.Array(UuidSchema, { description: 'The roles of this membership. They hold in this account only.' }),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

/** A role for members of an account as the API shows it. */
export const AccountRoleRow = namedObject('AccountRole', {
  document_id: UuidSchema,
  name: Type.String(),
  description: nullable(Type.String()),
  permissions: Type.Array(Type.String()),
  requires_second_factor: Type.Boolean(),
  is_givable: Type.Boolean({
    description: 'Whether the caller holds all of its permissions in this account, which giving and taking it need.',
  }),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

/** The ids of the roles of a membership. */
export const MemberRolesSchema = Type.Array(UuidSchema, {
  maxItems: 20,
  uniqueItems: true,
  description: 'Ids of account-scoped roles.',
})

export const AddAccountMemberBody = namedObject('AddAccountMember', {
  user: UuidSchema,
  roles: Type.Optional(MemberRolesSchema),
})
export const UpdateAccountMemberBody = namedObject('UpdateAccountMember', {
  user: UuidSchema,
  roles: MemberRolesSchema,
})
export const RemoveAccountMemberBody = namedObject('RemoveAccountMember', { user: UuidSchema })
