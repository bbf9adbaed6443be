import type { AccountId, SessionId, UserId } from '../../base/id.ts'
import { columnsOf, wireOf } from '../../http/shape/wire-row.ts'
import { countBehindLock } from '../../postgres/statement/counted-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, rowStatement, statement } from '../../postgres/statement/statement.ts'
import { ApiKeyRow } from './api-key.schema.ts'
import { HOLDINGS, HOLDINGS_OF_USER } from './delegation.store.ts'
import type { Holdings } from './delegation.ts'

/** An API key: every column that the API shows. The table stores the hash of the key, not the key. */
const apiKey = defineRecord('api_key', columnsOf(ApiKeyRow), { user: 'userId', permissions: 'patterns' })
export type ApiKeyRecord = RecordOf<typeof apiKey>
export const toApiKeyRow = wireOf(apiKey, ApiKeyRow)

/** The unrevoked keys, as the base of a list: of one user, or of all. */
export function selectApiKeys(db: Database, owner: UserId | 'all') {
  const unrevoked = selectRecord(db.selectFrom('api_key'), apiKey).where('revoked_at', 'is', null)
  return owner === 'all' ? unrevoked : unrevoked.where('user', '=', owner)
}

const UNREVOKED = 'k.document_id = $id and k.revoked_at is null'
/** The unrevoked key with this id. */
export const findApiKey = rowStatement<ApiKeyRecord, { id: string }>(
  `select ${apiKey.members('k')} from api_key k where ${UNREVOKED}`,
)

/** The unrevoked key with this id, and its user's permissions. */
export const findApiKeyWithHoldings = rowStatement<ApiKeyRecord & { holdings: Holdings }, { id: string }>(`
  select ${apiKey.members('k')}, ${HOLDINGS} from api_key k join "user" u on u.document_id = k."user" ${HOLDINGS_OF_USER}
  where ${UNREVOKED}`)

/** A new key. */
type NewApiKey = Pick<
  ApiKeyRecord,
  'id' | 'userId' | 'account' | 'createdWith' | 'name' | 'hint' | 'patterns' | 'expiresAt'
> & {
  tokenHash: Buffer
  now: Date
}

const insert = closingStatement<NewApiKey>(`
  new_key as (
    insert into api_key (document_id, "user", name, token_hash, hint, permissions, expires_at, created_at, updated_at,
      account, created_with)
    values ($id, $userId, $name, $tokenHash, $hint, $patterns, $expiresAt, $now, $now, $account, $createdWith))`)

/** Inserts a key, with the last statement of the transaction. */
export async function insertApiKey(db: Database, row: NewApiKey): Promise<ApiKeyRecord> {
  const { tokenHash: _, now, ...key } = row
  await insert(db, row)
  return { ...key, lastUsedAt: null, revokedAt: null, createdAt: now, updatedAt: now }
}

const revoke = statement<ApiKeyRecord, { id: string; owner: UserId | null; now: Date }>(`
  update api_key k set revoked_at = $now, updated_at = $now
  where ${UNREVOKED} and ($owner::uuid is null or k."user" = $owner)
  returning ${apiKey.members('k')}`)

/** Revokes the key with this id, of `owner` or of any user. Undefined when there is no unrevoked key with this id. */
export async function revokeApiKeyRow(
  db: Database,
  id: string,
  { owner, now }: { owner: UserId | 'all'; now: Date },
): Promise<ApiKeyRecord | undefined> {
  const [row] = await revoke(db, { id, owner: owner === 'all' ? null : owner, now })
  return row
}

/** Revokes all keys of a user, with the last statement of the transaction. */
export const endUserApiKeys = closingStatement<{ userId: UserId; now: Date }>(
  `ended_keys as (
    update api_key set revoked_at = $now, updated_at = $now where "user" = $userId and revoked_at is null)`,
  ({ userId }) => `u:${userId}`,
)

const revokeBound = closingStatement<{ account: AccountId; owner: UserId | null; now: Date }>(`
  ended_account_keys as (
    update api_key set revoked_at = $now, updated_at = $now
    where account = $account and ($owner::uuid is null or "user" = $owner) and revoked_at is null)`)

/** Revokes the keys that are bound to an account, of one user or of all, with the last statement of the transaction. */
export function endAccountApiKeys(
  db: Database,
  { account, userId, now }: { account: AccountId; userId: UserId | 'all'; now: Date },
): Promise<void> {
  const [owner, invalidations] = userId === 'all' ? [null, '*'] : [userId, `u:${userId}`]
  return revokeBound(db, { account, owner, now }, { invalidations })
}

/** The facts that decide whether a token may create a key. */
export interface KeyMakerFacts {
  /** Whether the session or key of the token is unrevoked and unexpired, and its user active. */
  isTokenLive: boolean
  /** Expiry of the key of the token; null for a session and for a key that does not expire. */
  tokenExpiresAt: Date | null
  /** The number of the user's keys that are unrevoked and unexpired. */
  liveKeys: number
  /** Whether the account of the key exists; true for a key without one. */
  hasAccount: boolean
  /** Permissions that the user holds through the token. */
  holdings: Holdings
}

/** The token that creates a key, and the account of the key. */
interface KeyMaker {
  userId: UserId
  sessionId: SessionId | null
  apiKeyId: string | null
  account: AccountId | null
  now: Date
}

/** The account is locked before the user (`LOCK_ORDER`): a deletion of the account waits, and then revokes the key. */
const countKeys = countBehindLock<KeyMakerFacts, KeyMaker>({
  counts: 'API keys of a user',
  lock: 'user',
  before: 'a as (select document_id from account where document_id = $account and deleted_at is null for share)',
  rows: 'select x.document_id from "user" x where x.document_id = $userId and (select count(*) from a) >= 0',
  read: `
    select f.is_live as "isTokenLive", f.expires_at as "tokenExpiresAt", f.live_keys as "liveKeys",
      $account::uuid is null or exists (select from a) as "hasAccount", ${HOLDINGS}
    from locked u cross join lateral key_maker(u.document_id, $sessionId, $apiKeyId, $now) f
    cross join lateral holdings_of_token(u.document_id, $sessionId, $apiKeyId, $now) h`,
})

/** The facts of a deleted user. */
const NOTHING: KeyMakerFacts = {
  isTokenLive: false,
  tokenExpiresAt: null,
  liveKeys: 0,
  hasAccount: true,
  holdings: { patterns: [], accountPatterns: [], membershipPatterns: [], accounts: [] },
}

/**
 * Locks the account of a key and the user of a token until the transaction ends, and reads behind the locks the facts
 * for the creation of the key. They serialize creations of one user, also against transactions that revoke keys and
 * sessions of the user, change its permissions, or delete the account.
 */
export async function lockKeyMaker(db: Database, maker: KeyMaker): Promise<KeyMakerFacts> {
  const [row] = await countKeys(db, maker)
  return row ?? NOTHING
}
