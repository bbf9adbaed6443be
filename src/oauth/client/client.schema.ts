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
import { SCOPES } from '../scope/scope-catalogue.ts'
import { SIGNING_ALGORITHMS } from '../signing-key/signing-key.store.ts'
import { type ClientRecord, client, GRANT_TYPES } from './client.store.ts'
import { type ClientSettings, DEFAULT_SETTINGS, NAME_LENGTH_LIMIT, URIS_LIMIT } from './client.ts'
import { AUTH_METHODS, type ClientProof } from './client-proof.ts'
import { URI_LENGTH_LIMIT } from './redirect-uri.ts'

const TYPES = ['confidential', 'public'] as const
const APPLICATION_TYPES = ['web', 'native'] as const

/** A scope of the catalogue. */
export const ScopeSchema = named('OauthScope', enumSchema(SCOPES.map(({ name }) => name)))

/** Public keys (RFC 7517). */
const JwksSchema = namedObject(
  'OauthClientKeys',
  { keys: Type.Array(Type.Object({}, { additionalProperties: true }), { minItems: 1, maxItems: 10 }) },
  { additionalProperties: false },
)

const clientMembers = {
  document_id: UuidSchema,
  client_id: Type.String({ ...UuidSchema, description: 'The `client_id` of the protocol.' }),
  name: Type.String(),
  type: enumSchema(TYPES),
  application_type: enumSchema(APPLICATION_TYPES),
  redirect_uris: Type.Array(Type.String()),
  post_logout_redirect_uris: Type.Array(Type.String()),
  grant_types: Type.Array(enumSchema(GRANT_TYPES)),
  scopes: Type.Array(ScopeSchema),
  publisher: nullable(Type.String()),
  first_party: Type.Boolean(),
  backchannel_logout_uri: nullable(Type.String()),
  id_token_signed_response_alg: enumSchema(SIGNING_ALGORITHMS),
  dpop_bound_access_tokens: Type.Boolean(),
  logo_uri: nullable(Type.String({ description: 'Where the logo of the app was fetched from.' })),
  token_endpoint_auth_method: enumSchema(['none', ...AUTH_METHODS]),
  jwks: nullable(JwksSchema),
  jwks_uri: nullable(Type.String()),
  require_pushed_authorization_requests: Type.Boolean(),
  registration: enumSchema(['administrator', 'dynamic'], { description: 'Who registered the client.' }),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
}

/** A client as the API shows it: never with its secret. */
export const ClientRow = namedObject('OauthClient', clientMembers)

/** The answers to create and rotate-secret, the only ones that show the secret. */
export const ClientWithSecret = namedObject('OauthClientWithSecret', {
  ...clientMembers,
  client_secret: nullable(
    Type.String({ description: '`sbcs_...`. Shown once; null for a public client and in an idempotent replay.' }),
  ),
})

const UrisSchema = Type.Array(Type.String({ minLength: 1, maxLength: URI_LENGTH_LIMIT }), {
  maxItems: URIS_LIMIT,
  uniqueItems: true,
})
const GrantTypesSchema = Type.Array(enumSchema(GRANT_TYPES), { minItems: 1, maxItems: 3, uniqueItems: true })
const ScopesSchema = Type.Array(ScopeSchema, {
  minItems: 1,
  maxItems: 100,
  uniqueItems: true,
  description: 'The scopes that the client may ask for.',
})
const PublisherSchema = nullable(
  Type.String({ maxLength: 100, description: 'Who runs the app, for the consent page.' }),
)
const BackchannelSchema = nullable(
  Type.String({ maxLength: URI_LENGTH_LIMIT, description: 'Where sign-outs are posted to.' }),
)

const LogoSchema = nullable(
  Type.String({
    minLength: 1,
    maxLength: URI_LENGTH_LIMIT,
    description:
      'The https address of a PNG, JPEG, WebP or GIF image of at most 128 KiB. It is fetched now, and served by this service on the consent page.',
  }),
)

const changeable = {
  post_logout_redirect_uris: Type.Optional(UrisSchema),
  grant_types: Type.Optional(GrantTypesSchema),
  scopes: Type.Optional(ScopesSchema),
  publisher: Type.Optional(PublisherSchema),
  first_party: Type.Optional(
    Type.Boolean({ description: 'The app of the platform itself: on the web it is allowed without a question.' }),
  ),
  backchannel_logout_uri: Type.Optional(BackchannelSchema),
  logo_uri: Type.Optional(LogoSchema),
  id_token_signed_response_alg: Type.Optional(enumSchema(SIGNING_ALGORITHMS, { description: 'Default ES256.' })),
  dpop_bound_access_tokens: Type.Optional(
    Type.Boolean({ description: 'Whether every request for a token needs DPoP.' }),
  ),
  token_endpoint_auth_method: Type.Optional(
    enumSchema(AUTH_METHODS, { description: 'How a confidential client proves itself. Default client_secret_basic.' }),
  ),
  jwks: Type.Optional(nullable(JwksSchema)),
  jwks_uri: Type.Optional(
    nullable(Type.String({ maxLength: URI_LENGTH_LIMIT, description: 'Where the keys of private_key_jwt are.' })),
  ),
  require_pushed_authorization_requests: Type.Optional(
    Type.Boolean({ description: 'Whether each authorization request is pushed.' }),
  ),
}

export const CreateClientBody = namedObject('CreateOauthClient', {
  name: lineSchema(NAME_LENGTH_LIMIT),
  type: enumSchema(TYPES),
  application_type: Type.Optional(enumSchema(APPLICATION_TYPES, { description: 'Default web.' })),
  redirect_uris: Type.Optional(UrisSchema),
  ...changeable,
})

export const UpdateClientBody = namedObject(
  'UpdateOauthClient',
  { name: Type.Optional(lineSchema(NAME_LENGTH_LIMIT)), redirect_uris: Type.Optional(UrisSchema), ...changeable },
  { minProperties: 1 },
)

export const RotateSecretBody = nullable(
  namedObject('RotateOauthClientSecret', {
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2_592_000,
        description: 'For how long the secrets before this one stay valid. Default 86400.',
      }),
    ),
  }),
)

/** The settings that a body gives. */
export function readSettings(body: Static<typeof UpdateClientBody>): Partial<ClientSettings> {
  return {
    ...(body.name !== undefined && { name: body.name }),
    ...(body.redirect_uris && { redirectUris: body.redirect_uris }),
    ...(body.post_logout_redirect_uris && { postLogoutRedirectUris: body.post_logout_redirect_uris }),
    ...(body.grant_types && { grantTypes: body.grant_types }),
    ...(body.scopes && { scopes: body.scopes }),
    ...(body.publisher !== undefined && { publisher: body.publisher }),
    ...(body.first_party !== undefined && { isFirstParty: body.first_party }),
    ...(body.backchannel_logout_uri !== undefined && { backchannelLogoutUri: body.backchannel_logout_uri }),
    ...(body.logo_uri !== undefined && { logoUri: body.logo_uri }),
    ...(body.id_token_signed_response_alg && { idTokenAlg: body.id_token_signed_response_alg }),
    ...(body.dpop_bound_access_tokens !== undefined && { isDpopBound: body.dpop_bound_access_tokens }),
    ...readProof(body),
  }
}

function readProof(body: Static<typeof UpdateClientBody>): Partial<ClientProof> {
  const { token_endpoint_auth_method: authMethod, jwks, jwks_uri: jwksUri } = body
  const { require_pushed_authorization_requests: isParRequired } = body
  return {
    ...(authMethod !== undefined && { authMethod }),
    ...(jwks !== undefined && { jwks: jwks as ClientProof['jwks'] }),
    ...(jwksUri !== undefined && { jwksUri }),
    ...(isParRequired !== undefined && { isParRequired }),
  }
}

/** The settings of a new client. */
export function readNewSettings(body: Static<typeof CreateClientBody>): ClientSettings {
  const { name, type, application_type: applicationType = 'web', redirect_uris: redirectUris = [] } = body
  return { ...DEFAULT_SETTINGS, ...readSettings(body), name, type, applicationType, redirectUris }
}

const toStoredRow = wireOf(client, ClientRow)

/** Maps a client for the wire. */
export function toClientRow(record: ClientRecord): Static<typeof ClientRow> {
  return {
    ...toStoredRow(record),
    client_id: record.id,
    token_endpoint_auth_method: record.type === 'public' ? 'none' : record.authMethod,
    jwks: record.jwks,
    jwks_uri: record.jwksUri,
    require_pushed_authorization_requests: record.isParRequired,
  }
}
