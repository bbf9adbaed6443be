import { namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { divideAccounts } from './by-connection.ts'
import type { Refreshed } from './refresh.ts'
import { type AccountName, type SessionDescription, type SessionUser, session, withClient } from './session.store.ts'

const RefreshTokenSchema = Type.String({ minLength: 1, maxLength: 255, description: '`sbr_...`' })

export const RefreshBody = namedObject('RefreshSession', { refresh_token: RefreshTokenSchema })

/** The whole body is optional. */
export const RevokeBody = nullable(
  namedObject('RevokeSession', {
    all: Type.Optional(Type.Boolean({ description: 'Every session of the user. Default false.' })),
    family: Type.Optional(
      Type.Boolean({
        description:
          'Also the session that this one was opened from by a handshake, and every session opened from that. Default false.',
      }),
    ),
    refresh_token: Type.Optional(RefreshTokenSchema),
    keep_apps: Type.Optional(
      Type.Boolean({ description: 'With `all`: whether the apps of the user stay connected. Default false.' }),
    ),
    keep_api_keys: Type.Optional(
      Type.Boolean({ description: 'With `all`: whether the API keys of the user go on. Default false.' }),
    ),
  }),
)

/** The answer to a refresh. Members shared with a sign-in have the same names (docs/contract/sessions.md#login-payload). */
export const RefreshedTokens = namedObject('SessionTokens', {
  jwt: Type.String(),
  token_type: Type.Literal('Bearer'),
  expires_in: Type.Integer({ description: 'Lifetime of the JWT in seconds, from now.' }),
  refresh_token: Type.String({ description: 'The next refresh token; the one that was sent is spent.' }),
})

/** The number of revoked sessions. */
export const SessionsRevoked = namedObject('RevokedSessions', { revoked: Type.Integer() })

/** The user as a sign-in and a session show it (docs/contract/sessions.md#login-payload). */
export const SessionUserRow = namedObject('SessionUser', {
  document_id: UuidSchema,
  email: Type.String(),
  name: nullable(Type.String()),
  avatar_url: nullable(Type.String()),
})

/** An account as a sign-in and a session show it (docs/contract/sessions.md#login-payload). */
export const AccountNameRow = namedObject('SessionAccount', { document_id: UuidSchema, name: Type.String() })

/** The members of a session about its app. */
export const sessionAppMembers = {
  client_id: nullable(Type.String({ description: 'The app that the session is for; null for the user.' })),
  scope: nullable(Type.String({ description: 'What the user let the app do, separated by spaces.' })),
}

/** The members of a session about its sign-in and its times. */
export const sessionSignInMembers = {
  address: nullable(Type.String()),
  user_agent: nullable(Type.String()),
  amr: Type.Array(Type.String(), { description: 'The methods of the sign-in (RFC 8176).' }),
  acr: nullable(Type.String()),
  auth_time: TimestampSchema,
  last_used_at: TimestampSchema,
  expires_at: TimestampSchema,
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
}

const SessionFacts = namedObject('SessionFacts', {
  document_id: UuidSchema,
  parent: nullable(UuidSchema),
  ...sessionAppMembers,
  ...sessionSignInMembers,
})

/** An account that a token lacks (docs/contract/connections.md#members-of-several-accounts). */
const ClosedAccountRow = namedObject('ClosedAccount', {
  document_id: UuidSchema,
  name: Type.String(),
  connection: UuidSchema,
  enter_path: nullable(
    Type.String({
      description:
        'Behind `BASE_URL` the page at which the user proves the session; takes `next` or `redirect_url`. Null for an API key.',
    }),
  ),
})

/** The caller of a token and its permissions. */
export const SessionRow = namedObject('Session', {
  session: nullable(SessionFacts),
  api_key: nullable(UuidSchema),
  user: SessionUserRow,
  account: nullable(AccountNameRow),
  accounts: Type.Array(AccountNameRow),
  closed_accounts: Type.Array(ClosedAccountRow, {
    description:
      'Accounts of the user that this token does not reach, because a connection has not proven the session.',
  }),
  permissions: Type.Array(Type.String(), { description: 'Patterns that hold everywhere.' }),
  account_permissions: Type.Array(Type.String(), { description: "Patterns that hold in the caller's accounts." }),
  membership_permissions: Type.Array(
    namedObject('MembershipPermissions', { account: UuidSchema, permissions: Type.Array(Type.String()) }),
    { description: 'Patterns that hold in one account each: those of the roles of a membership.' },
  ),
  key_permissions: nullable(
    Type.Array(Type.String(), {
      description:
        'Restrictions of all of these: the patterns of an API key, or the permissions of the scopes of an app.',
    }),
  ),
})

/** Maps a user for the wire. */
export function toSessionUserRow(user: SessionUser): Static<typeof SessionUserRow> {
  return { document_id: user.id, email: user.email, name: user.name, avatar_url: user.avatarUrl }
}

/** Maps an account for the wire. */
export function toAccountNameRow(account: AccountName): Static<typeof AccountNameRow> {
  return { document_id: account.id, name: account.name }
}

/** Maps a refresh for the wire. */
export function toRefreshedTokens({ issued }: Refreshed): Static<typeof RefreshedTokens> {
  return {
    jwt: issued.jwt,
    token_type: 'Bearer',
    expires_in: issued.expiresInSeconds,
    refresh_token: issued.refreshToken,
  }
}

const toFacts = wireOf(session, SessionFacts)

/** Maps a caller for the wire. */
export function toSessionRow(description: SessionDescription, caller: Caller): Static<typeof SessionRow> {
  const { session: described, user, accounts, closed } = divideAccounts(description, caller)
  const current = accounts.find(({ id }) => id === caller.accountId)
  return {
    session: described ? toFacts(withClient(described)) : null,
    api_key: caller.apiKeyId,
    user: toSessionUserRow(user),
    account: current ? toAccountNameRow(current) : null,
    accounts: accounts.map(toAccountNameRow),
    closed_accounts: closed.map(({ connection, enterPath, ...account }) => ({
      ...toAccountNameRow(account),
      connection,
      enter_path: enterPath,
    })),
    permissions: [...caller.patterns],
    account_permissions: [...caller.accountPatterns],
    membership_permissions: caller.membershipPatterns.map(({ account, patterns }) => ({
      account,
      permissions: [...patterns],
    })),
    key_permissions: caller.ceiling ? [...caller.ceiling] : null,
  }
}
