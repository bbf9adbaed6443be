import type { AdapterPayload } from 'oidc-provider'
import { isUuid } from '../id.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { type ClientId, type ClientRecord, findClientWithSecrets, insertClient } from './client.store.ts'
import { checkSettings } from './client.ts'
import { describeSecrets, hashClientSecret } from './client-secret.ts'
import type { SigningAlgorithm } from './signing-key.store.ts'

/** The client as the provider reads it (RFC 7591 section 2); undefined when there is none. */
export async function findClientMetadata(db: Database, id: string): Promise<AdapterPayload | undefined> {
  if (!isUuid(id)) return undefined
  const found = await findClientWithSecrets(db, id)
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
    token_endpoint_auth_method: client.type === 'public' ? 'none' : 'client_secret_basic',
    first_party: client.isFirstParty,
    ...(client.publisher !== null && { publisher: client.publisher }),
    ...(client.type === 'confidential' && { client_secret: secrets }),
    ...(client.backchannelLogoutUri !== null && {
      backchannel_logout_uri: client.backchannelLogoutUri,
      backchannel_logout_session_required: true,
    }),
  }
}

/** Writes a client that registered itself. Its secret is kept as a hash. Throws a 422 for settings that break a rule. */
export async function registerDynamicClient(
  db: Database,
  input: { id: string; payload: AdapterPayload; now: Date },
): Promise<void> {
  const { id, payload, now } = input
  const secret = typeof payload.client_secret === 'string' ? payload.client_secret : undefined
  const client: ClientRecord = {
    id: id as ClientId,
    name: String(payload.client_name ?? new URL(String(payload.redirect_uris?.[0] ?? 'app:')).host),
    type: payload.token_endpoint_auth_method === 'none' ? 'public' : 'confidential',
    applicationType: payload.application_type === 'native' ? 'native' : 'web',
    redirectUris: [...(payload.redirect_uris ?? [])],
    postLogoutRedirectUris: [...(payload.post_logout_redirect_uris ?? [])],
    grantTypes: [...(payload.grant_types ?? ['authorization_code'])],
    scopes: String(payload.scope ?? 'openid').split(' '),
    publisher: null,
    isFirstParty: false,
    backchannelLogoutUri: payload.backchannel_logout_uri ?? null,
    idTokenAlg: (payload.id_token_signed_response_alg ?? 'ES256') as SigningAlgorithm,
    isDpopBound: payload.dpop_bound_access_tokens === true,
    registration: 'dynamic',
    createdAt: now,
    updatedAt: now,
  }
  checkSettings(client)
  await inTransaction(db, (tx) =>
    insertClient(tx, client, secret === undefined ? undefined : { id, hash: hashClientSecret(secret) }),
  )
}
