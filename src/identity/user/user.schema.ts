import { lineSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { NewPasswordSchema } from '../password/password.schema.ts'
import { ACCOUNTS_SHOWN, type ListedUser, type UserWithRoles, user } from '../user-record/user.store.ts'

/** 254 characters fit into SMTP's path of 256 (RFC 5321 section 4.5.3.1.3). */
export const EmailSchema = Type.String({ format: 'email', maxLength: 254 })

/** The token of a link. Anything else of this length is an unknown one. */
export const LinkTokenSchema = Type.String({ minLength: 1, maxLength: 200, description: 'The `token` of the link.' })

/** Whether API keys survive a change that revokes them (docs/contract/identity.md#key-revocation). */
export const KeepApiKeysSchema = Type.Boolean({
  description: "Whether the user's API keys go on. Default false: they are revoked.",
})

/** Whether apps survive a change that disconnects them (docs/contract/sessions.md#what-ends-what). */
export const KeepAppsSchema = Type.Boolean({
  description: "Whether the user's apps stay connected. Default false: their tokens and sessions end.",
})

/** The body of the actions that revoke sessions and API keys of a user. */
export const EndTokensBody = nullable(namedObject('EndTokens', { keep_api_keys: Type.Optional(KeepApiKeysSchema) }))

/** The numbers of revoked sessions and API keys. */
export const TokensRevoked = namedObject('RevokedTokens', { revoked: Type.Integer(), api_keys_revoked: Type.Integer() })

const RolesSchema = Type.Array(UuidSchema, { maxItems: 100, uniqueItems: true, description: 'Role ids.' })

/** The members of a user on the wire. */
export const userMembers = {
  document_id: UuidSchema,
  email: Type.String(),
  email_verified_at: nullable(TimestampSchema),
  name: nullable(Type.String()),
  avatar_url: nullable(Type.String()),
  has_password: Type.Boolean({ description: 'Whether the user can sign in with a password.' }),
  is_actived: Type.Boolean(),
  last_sign_in_at: nullable(Type.String({ ...TimestampSchema, description: 'Null before the first sign-in.' })),
  roles: Type.Array(UuidSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
  deleted_at: nullable(TimestampSchema),
}

/** A user as the API shows it. */
export const UserRow = namedObject('User', userMembers)

/** A user as the list of users shows it. */
export const ListedUserRow = namedObject('ListedUser', {
  ...userMembers,
  providers: Type.Array(Type.String(), { description: 'Providers that the user signs in with.' }),
  accounts: Type.Array(namedObject('AccountName', { document_id: UuidSchema, name: Type.String() }), {
    description: `The first ${ACCOUNTS_SHOWN} accounts that the user joined.`,
  }),
  has_more_accounts: Type.Boolean(),
})

export const CreateUserBody = namedObject('CreateUser', {
  email: EmailSchema,
  name: Type.Optional(nullable(lineSchema(200))),
  password: Type.Optional(NewPasswordSchema),
  roles: Type.Optional(RolesSchema),
})

export const UpdateUserBody = namedObject(
  'UpdateUser',
  {
    email: Type.Optional(EmailSchema),
    name: Type.Optional(nullable(lineSchema(200))),
    password: Type.Optional(NewPasswordSchema),
    roles: Type.Optional(RolesSchema),
    keep_api_keys: Type.Optional(KeepApiKeysSchema),
  },
  { minProperties: 1 },
)

const toStoredRow = wireOf(user, UserRow)

/** Maps a user of the list for the wire. */
export function toListedUserRow(found: ListedUser): Static<typeof ListedUserRow> {
  const { providers, accounts } = found
  const shown = accounts.slice(0, ACCOUNTS_SHOWN)
  return { ...toUserRow(found), providers, accounts: shown, has_more_accounts: accounts.length > ACCOUNTS_SHOWN }
}

/** Maps a user for the wire. */
export function toUserRow(found: UserWithRoles): Static<typeof UserRow> {
  return { ...toStoredRow(found), has_password: found.hasPassword, roles: found.roles }
}
