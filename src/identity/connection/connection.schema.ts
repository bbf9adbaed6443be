import {
  enumSchema,
  lineSchema,
  named,
  namedObject,
  nullable,
  TimestampSchema,
  UuidSchema,
} from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { type ConnectionRecord, connection } from './connection.store.ts'
import { CreateSaml, SamlPart, toSamlPart, UpdateSaml } from './saml/settings/saml-settings.schema.ts'

const KindSchema = named(
  'ConnectionKind',
  enumSchema(['oidc', 'saml'], { description: '`oidc`: an OpenID provider. `saml`: a SAML 2.0 identity provider.' }),
)

/** Longest name of a group, in characters: Microsoft sends ids, LDAP distinguished names. */
const GROUP_NAME_LIMIT = 256

const GROUP_ROLES_LIMIT = 100

const IssuerSchema = Type.String({
  minLength: 1,
  maxLength: 1024,
  description: 'The issuer of the provider: https, a public host, without query and fragment.',
})
const ClientIdSchema = Type.String({ minLength: 1, maxLength: 512, pattern: '^[\\x20-\\x7e]+$' })
const ClientSecretSchema = Type.String({
  minLength: 1,
  maxLength: 2048,
  pattern: '^[\\x20-\\x7e]+$',
  description: 'Of the client at the provider. Never shown again.',
})
const ScopesSchema = Type.Array(
  Type.String({ minLength: 1, maxLength: 128, pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$' }),
  {
    maxItems: 20,
    uniqueItems: true,
    description: 'What is asked for. `openid` is always among them. Default: `openid`, `email`, `profile`.',
  },
)
const GroupsClaimSchema = nullable(
  Type.String({
    minLength: 1,
    maxLength: 256,
    pattern: '^[\\x21-\\x7e]+$',
    description: 'The claim that lists the groups of a person: `groups`. Null: groups are ignored.',
  }),
)
const EmailTrustSchema = Type.Boolean({
  description:
    'Whether an address counts as verified when the provider does not say so. For a provider whose people cannot set their own address. Default false.',
})

const groupRoleMembers = {
  group: Type.String({
    minLength: 1,
    maxLength: GROUP_NAME_LIMIT,
    pattern: '^[^\\u0000-\\u001f\\u007f]+$',
    description: 'As the provider writes it. Compared exactly.',
  }),
  role: UuidSchema,
}
const GroupRoleRow = namedObject('ConnectionGroupRole', groupRoleMembers)
const GroupRoleSchema = namedObject('GiveConnectionGroupRole', groupRoleMembers)
const GroupRolesSchema = Type.Array(GroupRoleSchema, {
  maxItems: GROUP_ROLES_LIMIT,
  description: 'The account-scoped roles that groups of the provider give. Replaced as a whole.',
})

const OidcPart = namedObject('OidcConnection', {
  issuer: Type.String(),
  client_id: Type.String(),
  scopes: Type.Array(Type.String()),
  groups_claim: nullable(Type.String()),
  is_email_trusted: Type.Boolean(),
  redirect_path: Type.String({ description: 'Behind `BASE_URL` the redirect URI to register at the provider.' }),
})

/** A connection as the API shows it, never with a secret. */
export const ConnectionRow = namedObject('Connection', {
  document_id: UuidSchema,
  account: UuidSchema,
  kind: KindSchema,
  name: Type.String(),
  is_enabled: Type.Boolean({ description: 'While false it opens no session, and closes no other way in.' }),
  is_enforced: Type.Boolean({
    description: 'Whether members with an address of its proven domains sign in by it alone.',
  }),
  is_jit: Type.Boolean({ description: 'Whether unknown people of its proven domains become users and members.' }),
  default_role: nullable(Type.String({ ...UuidSchema, description: 'Of a member none of whose groups has a role.' })),
  group_roles: Type.Array(GroupRoleRow),
  session_hours: Type.Integer({ description: 'Longest session that it opens.' }),
  oidc: nullable(OidcPart),
  saml: nullable(SamlPart),
  created_by: nullable(UuidSchema),
  updated_by: nullable(UuidSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

const SessionHoursSchema = Type.Integer({
  minimum: 1,
  maximum: 2160,
  description: 'Longest session that it opens, in hours: afterwards the provider is asked again. Default 24.',
})

const settings = {
  is_enabled: Type.Optional(Type.Boolean({ description: 'Default true.' })),
  is_enforced: Type.Optional(Type.Boolean({ description: 'Default false.' })),
  is_jit: Type.Optional(Type.Boolean({ description: 'Default false.' })),
  default_role: Type.Optional(nullable(UuidSchema)),
  group_roles: Type.Optional(GroupRolesSchema),
  session_hours: Type.Optional(SessionHoursSchema),
}

const oidcSettings = {
  scopes: Type.Optional(ScopesSchema),
  groups_claim: Type.Optional(GroupsClaimSchema),
  is_email_trusted: Type.Optional(EmailTrustSchema),
}

export const CreateConnectionBody = namedObject('CreateConnection', {
  kind: KindSchema,
  name: lineSchema(100),
  ...settings,
  oidc: Type.Optional(
    namedObject('CreateOidcConnection', {
      issuer: IssuerSchema,
      client_id: ClientIdSchema,
      client_secret: ClientSecretSchema,
      ...oidcSettings,
    }),
  ),
  saml: Type.Optional(CreateSaml),
})

export const UpdateConnectionBody = namedObject(
  'UpdateConnection',
  {
    name: Type.Optional(lineSchema(100)),
    ...settings,
    oidc: Type.Optional(
      namedObject('UpdateOidcConnection', {
        issuer: Type.Optional(IssuerSchema),
        client_id: Type.Optional(ClientIdSchema),
        client_secret: Type.Optional(ClientSecretSchema),
        ...oidcSettings,
      }),
    ),
    saml: Type.Optional(UpdateSaml),
  },
  { minProperties: 1 },
)

/** The path of routes on one connection of an account. */
export const ConnectionParams = Type.Object({ id: UuidSchema, connection: UuidSchema })

const toStoredRow = wireOf(connection, ConnectionRow)

/** Maps a connection for the wire. */
export function toConnectionRow(found: ConnectionRecord): Static<typeof ConnectionRow> {
  const { issuer, clientId, scopes, groupsClaim, isEmailTrusted } = found
  const isOidc = issuer !== null && clientId !== null && scopes !== null
  const oidc = isOidc && {
    issuer,
    client_id: clientId,
    scopes,
    groups_claim: groupsClaim,
    is_email_trusted: isEmailTrusted ?? false,
    redirect_path: `/api/v3/auth/login/oauth/${found.id}/callback`,
  }
  const { ssoUrl, certificates } = found
  const isSaml = issuer !== null && ssoUrl !== null && certificates !== null
  const saml = isSaml ? toSamlPart(found.id, { ...found, issuer, ssoUrl, certificates }) : null
  return { ...toStoredRow(found), group_roles: found.groupRoles, oidc: oidc || null, saml }
}
