import type { AccountId, PortalSessionId, SessionId, UserId } from '../../base/id.ts'
import type { AccountPatterns, PortalVisit, SessionProof } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { isAfter, statement } from '../../postgres/statement/statement.ts'
import { HOLDINGS_COLUMNS, HOLDINGS_OF_USER, type HoldingsRow, toHoldings } from '../access/delegation.store.ts'
import type { PortalRole } from '../access/system-roles.ts'

/** The rows of a caller, read in one statement. */
export interface CallerRecord {
  userId: UserId
  patterns: string[]
  accountPatterns: string[]
  membershipPatterns: AccountPatterns[]
  accounts: AccountId[]
}

/**
 * A session without a second factor does not hold the roles that need one. A key holds them, because only a session that
 * holds them can make it (docs/contract/second-factor.md#roles-that-need-a-second-factor).
 */
const HOLDINGS_OF_SESSION = `cross join lateral user_holdings(u.document_id, 'mfa' = any(s.amr)) h`

const CALLER_COLUMNS = `u.document_id as user_id, ${HOLDINGS_COLUMNS}`

interface CallerColumns extends HoldingsRow {
  user_id: string
}

function toCallerRecord(row: CallerColumns): CallerRecord {
  return { userId: row.user_id as UserId, ...toHoldings(row) }
}

interface SessionCallerColumns extends CallerColumns {
  account: string | null
  client_id: string | null
  scope: string | null
  expires_at: Date
  last_used_at: Date
  amr: string[]
  auth_time: Date
  has_factor: boolean
}

const selectSessionCaller = statement<SessionCallerColumns, { sessionId: SessionId; userId: UserId; now: Date }>(`
  select ${CALLER_COLUMNS}, s.account, s.client_id, s.scope, s.expires_at, s.last_used_at, s.amr, s.auth_time,
    has_second_factor(u.document_id) as has_factor
  from session s join "user" u on u.document_id = s."user" ${HOLDINGS_OF_SESSION}
  where s.document_id = $sessionId and s."user" = $userId
    and s.revoked_at is null and ${isAfter('s.expires_at', '$now')} and u.is_actived and u.deleted_at is null`)

/** The caller of a valid session, with what the session says. */
export interface SessionCallerRecord extends CallerRecord {
  accountId: AccountId | null
  /** The app that the session is for, and what the user let it do; null for a session of the user. */
  client: { id: string; scope: string } | null
  expiresAt: Date
  lastUsedAt: Date
  proof: SessionProof
}

/** The caller of a valid session: unrevoked, unexpired, of this user, who is active. */
export async function findSessionCaller(
  db: Database,
  { sessionId, userId, now }: { sessionId: SessionId; userId: UserId; now: Date },
): Promise<SessionCallerRecord | undefined> {
  const [row] = await selectSessionCaller(db, { sessionId, userId, now })
  return (
    row && {
      ...toCallerRecord(row),
      accountId: row.account as AccountId | null,
      client: row.client_id === null || row.scope === null ? null : { id: row.client_id, scope: row.scope },
      expiresAt: row.expires_at,
      lastUsedAt: row.last_used_at,
      proof: { hasFactor: row.has_factor, isMultiFactor: row.amr.includes('mfa'), provenAt: row.auth_time },
    }
  )
}

const selectUserCallers = statement<CallerColumns, { users: readonly UserId[] }>(`
  select ${CALLER_COLUMNS} from "user" u ${HOLDINGS_OF_USER}
  where u.document_id = any($users::uuid[]) and u.is_actived and u.deleted_at is null`)

/** The rows of those of these users who are active. */
export async function findUserCallers(db: Database, users: readonly UserId[]): Promise<CallerRecord[]> {
  return (await selectUserCallers(db, { users })).map(toCallerRecord)
}

/** The owner of an API key, and the patterns of the key. */
export interface KeyCallerRecord extends CallerRecord {
  apiKeyId: string
  keyPatterns: string[]
  /** The account that the key is bound to. */
  keyAccount: AccountId | null
  lastUsedAt: Date | null
  expiresAt: Date | null
}

interface KeyColumns {
  key_id: string
  permissions: string[]
  key_account: string | null
  last_used_at: Date | null
  expires_at: Date | null
}

const selectKeyCaller = statement<CallerColumns & KeyColumns, { tokenHash: Buffer; now: Date }>(`
  select ${CALLER_COLUMNS}, k.document_id as key_id, k.permissions, k.account as key_account,
    k.last_used_at, k.expires_at
  from api_key k join "user" u on u.document_id = k."user" ${HOLDINGS_OF_USER}
  where k.token_hash = $tokenHash and k.revoked_at is null and (k.expires_at is null or k.expires_at > $now)
    and (k.account is null or (select a.deleted_at is null from account a where a.document_id = k.account))
    and u.is_actived and u.deleted_at is null`)

/** The owner of a valid API key: unrevoked, unexpired, of an active user, and of an account that is not deleted. */
export async function findKeyCaller(db: Database, tokenHash: Buffer, now: Date): Promise<KeyCallerRecord | undefined> {
  const [row] = await selectKeyCaller(db, { tokenHash, now })
  return (
    row && {
      ...toCallerRecord(row),
      apiKeyId: row.key_id,
      keyPatterns: row.permissions,
      keyAccount: row.key_account as AccountId | null,
      lastUsedAt: row.last_used_at,
      expiresAt: row.expires_at,
    }
  )
}

/** A portal session, with what its API key and that key's owner hold. */
export interface PortalCallerRecord extends CallerRecord {
  portal: PortalVisit
  role: PortalRole
  account: AccountId
  apiKeyId: string
  keyPatterns: string[]
  /** The end of the session, or that of the key where it comes first. */
  expiresAt: Date
}

interface PortalColumns {
  session_id: string
  role: string
  account: string
  external_user: string | null
  key_id: string
  permissions: string[]
  expires_at: Date
}

/** Each row is looked up by its key, and judged afterwards. */
const selectPortalCaller = statement<CallerColumns & PortalColumns, { tokenHash: Buffer; now: Date }>(`
  select ${CALLER_COLUMNS}, p.document_id as session_id, p.role, p.account, p.external_user, k.document_id as key_id,
    k.permissions, least(p.expires_at, k.expires_at) as expires_at
  from (select * from portal_session where token_hash = $tokenHash offset 0) p
  cross join lateral (select * from api_key where document_id = p.api_key offset 0) k
  join "user" u on u.document_id = k."user" ${HOLDINGS_OF_USER}
  where p.revoked_at is null and ${isAfter('p.expires_at', '$now')}
    and k.revoked_at is null and (k.expires_at is null or k.expires_at > $now)
    and (k.account is null or k.account = p.account)
    and (select a.deleted_at is null from account a where a.document_id = p.account)
    and u.is_actived and u.deleted_at is null`)

/** The caller of a living portal session: its key lives too, the owner of the key is active, and its account is not deleted. */
export async function findPortalCaller(
  db: Database,
  tokenHash: Buffer,
  now: Date,
): Promise<PortalCallerRecord | undefined> {
  const [row] = await selectPortalCaller(db, { tokenHash, now })
  return (
    row && {
      ...toCallerRecord(row),
      portal: { id: row.session_id as PortalSessionId, externalUser: row.external_user },
      role: row.role as PortalRole,
      account: row.account as AccountId,
      apiKeyId: row.key_id,
      keyPatterns: row.permissions,
      expiresAt: row.expires_at,
    }
  )
}

const touch = statement<never, { id: SessionId; before: Date; now: Date }>(
  `update session set last_used_at = $now where document_id = $id and last_used_at <= $before`,
)

/** Updates the last use of a session, unless it was updated after `before`. */
export async function touchSession(db: Database, input: { id: SessionId; before: Date; now: Date }): Promise<void> {
  await touch(db, input)
}

/** Updates the last use of a key, unless it was updated after `before`: at most once a minute. */
export async function touchApiKey(db: Database, input: { id: string; before: Date; now: Date }): Promise<void> {
  await db
    .updateTable('api_key')
    .set({ last_used_at: input.now })
    .where('document_id', '=', input.id)
    .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<=', input.before)]))
    .execute()
}
