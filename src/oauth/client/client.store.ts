import type { Id } from '../../base/id.ts'
import { countBehindLock } from '../../postgres/statement/counted-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, isNull, rowStatement } from '../../postgres/statement/statement.ts'
import { type ClientProof, DEFAULT_PROOF } from './client-proof.ts'

export type ClientId = Id<'oauth client'>

/** The grant type of a device without a browser (RFC 8628). */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

/** The grant types that a client may use. */
export const GRANT_TYPES = ['authorization_code', 'refresh_token', DEVICE_GRANT] as const

export type GrantType = (typeof GRANT_TYPES)[number]

/** A stored client, whose id is also the `client_id` of the protocol; `logoHash` changes with the logo. */
export const client = defineRecord(
  'oauth_client',
  [
    'document_id',
    'name',
    'type',
    'application_type',
    'redirect_uris',
    'post_logout_redirect_uris',
    'grant_types',
    'scopes',
    'publisher',
    'first_party',
    'backchannel_logout_uri',
    'id_token_signed_response_alg',
    'dpop_bound_access_tokens',
    'registration',
    'logo_uri',
    'logo_hash',
    'proof',
    'created_at',
    'updated_at',
  ],
  {
    first_party: 'isFirstParty',
    id_token_signed_response_alg: 'idTokenAlg',
    dpop_bound_access_tokens: 'isDpopBound',
  },
).typed<{ grantTypes: GrantType[]; proof: Partial<ClientProof> | null }>()
type StoredClient = RecordOf<typeof client>

export type ClientRecord = Omit<StoredClient, 'proof'> & ClientProof

/** A secret of a client, without the secret. */
export interface ClientSecret {
  hash: Buffer
  expiresAt: Date | null
}

/** Fills in the proof of a client. */
export function toClientRecord({ proof, ...row }: StoredClient): ClientRecord {
  return { ...row, ...DEFAULT_PROOF, ...proof }
}

/** The clients that are not deleted, as the base of a list. */
export function selectClients(db: Database) {
  return selectRecord(db.selectFrom('oauth_client'), client).where('deleted_at', 'is', null)
}

/** The client with this id. */
export const findClient = rowStatement<StoredClient, { id: string }, ClientRecord>(
  `select ${client.members('c')} from oauth_client c where c.document_id = $id and c.deleted_at is null`,
  toClientRecord,
)

const countSecrets = countBehindLock<StoredClient & { liveSecrets: number }, { id: string; now: Date }>({
  counts: 'valid secrets of a client',
  lock: 'oauth_client',
  rows: 'select * from oauth_client where document_id = $id and deleted_at is null',
  read: `select ${client.members('c')}, live_secrets_of(c.document_id, $now) as "liveSecrets" from locked c`,
})

/** Locks the client with this id until the transaction ends, and counts its valid secrets behind the lock. */
export async function lockClient(
  db: Database,
  id: string,
  now: Date,
): Promise<{ client: ClientRecord; liveSecrets: number } | undefined> {
  const [row] = await countSecrets(db, { id, now })
  if (!row) return undefined
  const { liveSecrets, ...stored } = row
  return { client: toClientRecord(stored), liveSecrets }
}

/** The client with this id and the hashes of its secrets. */
export const findClientWithSecrets = rowStatement<
  StoredClient & { hashes: string[]; expiries: (Date | null)[] },
  { id: string },
  { client: ClientRecord; secrets: ClientSecret[] }
>(
  `select ${client.members('c')}, s.hashes, s.expiries from oauth_client c
  cross join lateral (
    select coalesce(array_agg(encode(secret_hash, 'hex') order by created_at, document_id), '{}') as hashes,
      coalesce(array_agg(expires_at order by created_at, document_id), '{}') as expiries
    from oauth_client_secret where client = c.document_id
  ) s
  where c.document_id = $id and c.deleted_at is null`,
  ({ hashes, expiries, ...stored }) => ({
    client: toClientRecord(stored),
    secrets: hashes.map((hash, index) => ({ hash: Buffer.from(hash, 'hex'), expiresAt: expiries[index] ?? null })),
  }),
)

/** The placeholders of a client: its fields, those of its proof as JSON. */
type ClientParams = Omit<ClientRecord, keyof ClientProof> & { proof: string }

function toParams({ authMethod, jwks, jwksUri, isParRequired, ...row }: ClientRecord): ClientParams {
  return { ...row, proof: JSON.stringify({ authMethod, jwks, jwksUri, isParRequired }) }
}

const insert = closingStatement<ClientParams & { secretId: string | null; secretHash: Buffer | null }>(`
  new_client as (
    insert into oauth_client (document_id, name, type, application_type, redirect_uris, post_logout_redirect_uris,
      grant_types, scopes, publisher, first_party, backchannel_logout_uri, id_token_signed_response_alg,
      dpop_bound_access_tokens, registration, created_at, updated_at, logo_uri, logo_hash, proof)
    values ($id, $name, $type, $applicationType, $redirectUris, $postLogoutRedirectUris, $grantTypes, $scopes,
      $publisher, $isFirstParty, $backchannelLogoutUri, $idTokenAlg, $isDpopBound, $registration, $createdAt, $updatedAt,
      $logoUri, $logoHash, $proof) returning document_id
  ), new_client_secret as (
    insert into oauth_client_secret (document_id, client, secret_hash, expires_at, created_at)
    select $secretId::uuid, document_id, $secretHash::bytea, null, $createdAt from new_client
    where $secretId::uuid is not null)`)

/** Inserts a client with its first secret, with the last statement of the transaction. */
export function insertClient(
  db: Database,
  row: ClientRecord,
  secret: { id: string; hash: Buffer } | undefined,
): Promise<void> {
  return insert(db, { ...toParams(row), secretId: secret?.id ?? null, secretHash: secret?.hash ?? null })
}

/** The change of a client, which drops it from the caches of processes. */
const invalidationOf = (id: ClientId) => `c:${id}`

const update = closingStatement<ClientParams>(`
  changed_client as (
    update oauth_client set name = $name, type = $type, application_type = $applicationType,
      redirect_uris = $redirectUris, post_logout_redirect_uris = $postLogoutRedirectUris, grant_types = $grantTypes,
      scopes = $scopes, publisher = $publisher, first_party = $isFirstParty,
      backchannel_logout_uri = $backchannelLogoutUri, id_token_signed_response_alg = $idTokenAlg,
      dpop_bound_access_tokens = $isDpopBound, registration = $registration, created_at = $createdAt,
      updated_at = $updatedAt, logo_uri = $logoUri, logo_hash = $logoHash, proof = $proof
    where document_id = $id)`)

/** Writes a locked client again, with the last statement of the transaction. */
export function updateClient(db: Database, row: ClientRecord): Promise<void> {
  return update(db, toParams(row), { invalidations: invalidationOf(row.id) })
}

/** Adds a secret to a locked client; those before it are accepted until `overlapUntil`. */
export const rotateClientSecret = closingStatement<{
  client: ClientId
  id: string
  hash: Buffer
  overlapUntil: Date
  now: Date
}>(
  `ended_secrets as (
    update oauth_client_secret set expires_at = $overlapUntil
    where client = $client and (expires_at is null or expires_at > $overlapUntil)
  ), next_secret as (
    insert into oauth_client_secret (document_id, client, secret_hash, expires_at, created_at)
    values ($id, $client, $hash, null, $now)
  ), touched_client as (update oauth_client set updated_at = $now where document_id = $client)`,
  ({ client }) => invalidationOf(client),
)

/** Deletes a locked client with its secrets and grants, whose tokens `end_client` revokes, with the last statement. */
export const deleteClientRow = closingStatement<{ id: ClientId; now: Date }>(
  `deleted_client as (update oauth_client set deleted_at = $now, updated_at = $now where document_id = $id),
  deleted_secrets as (delete from oauth_client_secret where client = $id),
  deleted_logo as (delete from oauth_client_logo where client = $id),
  ended_grants as (
    update oauth_grant set revoked_at = $now, updated_at = $now where client = $id and ${isNull('revoked_at')})`,
  ({ id }) => invalidationOf(id),
)
