import type { AdapterPayload } from 'oidc-provider'
import { isUuid } from '../../base/id.ts'
import { buildFieldProblem, invalidField } from '../../http/problem/problem.ts'
import { isLine } from '../../http/route/schema.ts'
import { checkShownName } from '../../http/shape/shown-name.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import type { SigningAlgorithm } from '../signing-key/signing-key.store.ts'
import {
  type ClientId,
  type ClientRecord,
  findClientWithSecrets,
  type GrantType,
  insertClient,
} from './client.store.ts'
import { checkSettings, DEFAULT_SETTINGS, hasSecret, NAME_LENGTH_LIMIT, URIS_LIMIT } from './client.ts'
import { describeSecrets, hashClientSecret } from './client-secret.ts'
import { URI_LENGTH_LIMIT } from './redirect-uri.ts'

/** The client as the provider reads it (RFC 7591 section 2); undefined when there is none. */
export async function findClientMetadata(db: Database, id: string): Promise<AdapterPayload | undefined> {
  if (!isUuid(id)) return undefined
  const found = await findClientWithSecrets(db, { id })
  return found && toMetadata(found.client, describeSecrets(found.secrets))
}

function toMetadata(client: ClientRecord, secrets: string): AdapterPayload {
  return {
    client_id: client.id,
    client_name: client.name,
    application_type: client.applicationType,
    redirect_uris: client.redirectUris,
    post_logout_redirect_uris: client.postLogoutRedirectUris,
    grant_types: client.grantTypes,
    response_types: client.grantTypes.includes('authorization_code') ? ['code'] : [],
    scope: client.scopes.join(' '),
    id_token_signed_response_alg: client.idTokenAlg,
    dpop_bound_access_tokens: client.isDpopBound,
    token_endpoint_auth_method: client.type === 'public' ? 'none' : client.authMethod,
    require_pushed_authorization_requests: client.isParRequired,
    ...(client.jwks && { jwks: client.jwks as never }),
    ...(client.jwksUri !== null && { jwks_uri: client.jwksUri }),
    first_party: client.isFirstParty,
    ...(hasSecret(client) && { client_secret: secrets }),
    ...(client.backchannelLogoutUri !== null && {
      backchannel_logout_uri: client.backchannelLogoutUri,
      backchannel_logout_session_required: true,
    }),
  }
}

/** The settings of a client that the service keeps, and those that it gives, by their names in a registration (RFC 7591). */
const REGISTERED: ReadonlySet<string> = new Set([
  ...['client_id', 'client_id_issued_at', 'client_name', 'application_type', 'subject_type', 'scope'],
  ...['redirect_uris', 'post_logout_redirect_uris', 'grant_types', 'response_types'],
  ...['id_token_signed_response_alg', 'dpop_bound_access_tokens', 'require_pushed_authorization_requests'],
  ...['token_endpoint_auth_method', 'backchannel_logout_uri', 'backchannel_logout_session_required'],
])
const OF_SECRET = ['client_secret', 'client_secret_expires_at']

/**
 * The answer to a registration: the settings that hold. The library confirms every setting that it knows, such as
 * `default_max_age` and `default_acr_values`; a client would rely on those without effect. Pure.
 */
export function describeRegistration(confirmed: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const method = confirmed.token_endpoint_auth_method
  const proof = method === 'private_key_jwt' ? ['jwks'] : method === 'none' ? [] : OF_SECRET
  return Object.fromEntries(Object.entries(confirmed).filter(([name]) => REGISTERED.has(name) || proof.includes(name)))
}

/** Checks a client that registers itself as the bodies of the API check any other. Pure. Throws 422. */
function checkRegistration({ name, redirectUris, postLogoutRedirectUris, backchannelLogoutUri }: ClientRecord): void {
  if (!isLine(name, NAME_LENGTH_LIMIT))
    throw buildFieldProblem({
      path: 'client_name',
      code: 'name',
      message: `must be one line of at most ${NAME_LENGTH_LIMIT} characters`,
      params: { limit: NAME_LENGTH_LIMIT },
    })
  checkShownName(name, 'client_name')
  const lists = { redirect_uris: redirectUris, post_logout_redirect_uris: postLogoutRedirectUris }
  for (const [member, uris] of Object.entries(lists))
    if (uris.length > URIS_LIMIT)
      throw buildFieldProblem({
        path: member,
        code: 'maxItems',
        message: `must hold at most ${URIS_LIMIT} URIs`,
        params: { limit: URIS_LIMIT },
      })
  if ((backchannelLogoutUri ?? '').length > URI_LENGTH_LIMIT)
    throw buildFieldProblem({
      path: 'backchannel_logout_uri',
      code: 'maxLength',
      message: `must have at most ${URI_LENGTH_LIMIT} characters`,
      params: { limit: URI_LENGTH_LIMIT },
    })
}

/** The name of a client without one: the host of its first redirect URI, else its id. */
function findName({ client_name: name, redirect_uris: uris }: AdapterPayload, id: string): string {
  return name ?? (URL.parse(uris?.[0] ?? '')?.host || id)
}

/** Writes a client that registered itself, with a hash of its secret. Throws a 422 for settings that break a rule. */
export async function registerDynamicClient(
  db: Database,
  input: { id: string; payload: AdapterPayload; now: Date },
): Promise<void> {
  const { id, payload, now } = input
  const secret = typeof payload.client_secret === 'string' ? payload.client_secret : undefined
  if (payload.token_endpoint_auth_method === 'private_key_jwt' && payload.jwks_uri !== undefined)
    throw invalidField('jwks_uri', 'registration', 'is set by an administrator; send the keys as jwks')
  const client: ClientRecord = {
    ...DEFAULT_SETTINGS,
    id: id as ClientId,
    name: findName(payload, id),
    type: payload.token_endpoint_auth_method === 'none' ? 'public' : 'confidential',
    applicationType: payload.application_type === 'native' ? 'native' : 'web',
    redirectUris: [...(payload.redirect_uris ?? [])],
    postLogoutRedirectUris: [...(payload.post_logout_redirect_uris ?? [])],
    // The library refuses any other one.
    grantTypes: [...(payload.grant_types ?? ['authorization_code'])] as GrantType[],
    scopes: String(payload.scope).split(' '),
    backchannelLogoutUri: payload.backchannel_logout_uri ?? null,
    idTokenAlg: payload.id_token_signed_response_alg as SigningAlgorithm,
    isDpopBound: payload.dpop_bound_access_tokens === true,
    authMethod: payload.token_endpoint_auth_method === 'private_key_jwt' ? 'private_key_jwt' : 'client_secret_basic',
    // Unused keys are allowed: a client may have them for other providers.
    jwks: payload.token_endpoint_auth_method === 'private_key_jwt' ? ((payload.jwks ?? null) as never) : null,
    isParRequired: payload.require_pushed_authorization_requests === true,
    registration: 'dynamic',
    // Its registration is unverified: a logo could imitate another app.
    logoUri: null,
    logoHash: null,
    createdAt: now,
    updatedAt: now,
  }
  checkRegistration(client)
  checkSettings(client)
  const kept = secret !== undefined && hasSecret(client) ? { id, hash: hashClientSecret(secret) } : undefined
  await inTransaction(db, (tx) => insertClient(tx, client, kept))
}
