import {
  enumSchema,
  lineSchema,
  namedObject,
  nullable,
  TimestampSchema,
  UuidSchema,
} from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import { NewPasswordSchema } from '../../password/password.schema.ts'
import { AccountNameRow } from '../../session/session.schema.ts'
import { AccountMemberRow, MemberRolesSchema } from '../account.schema.ts'

const StatusSchema = enumSchema(['open', 'accepted', 'revoked', 'expired'], {
  description: 'Only an open invitation can be accepted.',
})

/** An invitation as the API shows it. Its link is in the mail only. */
export const InvitationRow = namedObject('AccountInvitation', {
  document_id: UuidSchema,
  account: UuidSchema,
  email: Type.String(),
  roles: Type.Array(UuidSchema),
  status: StatusSchema,
  invited_by: UuidSchema,
  expires_at: TimestampSchema,
  accepted_at: nullable(TimestampSchema),
  accepted_by: nullable(UuidSchema),
  revoked_at: nullable(TimestampSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

export const CreateInvitationBody = namedObject(
  'CreateAccountInvitation',
  // 254 characters fit into SMTP's path of 256 (RFC 5321 section 4.5.3.1.3).
  { email: Type.String({ format: 'email', maxLength: 254 }), roles: Type.Optional(MemberRolesSchema) },
)

export const InvitationParams = Type.Object({ id: UuidSchema, invitation: UuidSchema })

export const AcceptInvitationBody = namedObject('AcceptAccountInvitation', {
  token: Type.String({ minLength: 1, maxLength: 200, description: 'The `token` of the link.' }),
  password: Type.Optional(NewPasswordSchema),
  name: Type.Optional(nullable(lineSchema(200))),
})

/** An accepted invitation: the account, and the membership in it. */
export const AcceptedInvitation = namedObject('AcceptedAccountInvitation', {
  account: AccountNameRow,
  member: AccountMemberRow,
  is_new_user: Type.Boolean(),
})
