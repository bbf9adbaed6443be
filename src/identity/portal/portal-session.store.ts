import type { AccountId, PortalSessionId, UserId } from '../../base/id.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import { countBehindLock } from '../../postgres/statement/counted-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, rowStatement } from '../../postgres/statement/statement.ts'

/**
 * A portal session, without the hashes of its link and its token. `externalUser` is the name that the platform gave the user,
 * `returnUrl` the page of the platform that opens the portal again, `expiresAt` the end of the link until it is opened, then
 * that of the session.
 */
export const portalSession = defineRecord(
  'portal_session',
  [
    'document_id',
    'account',
    'api_key',
    'role',
    'external_user',
    'return_url',
    'lifetime_seconds',
    'opened_at',
    'expires_at',
    'revoked_at',
    'created_at',
    'updated_at',
  ],
  { api_key: 'apiKeyId' },
)
export type PortalSessionRecord = RecordOf<typeof portalSession>

/** A portal session in a list, with the end of its API key. */
export interface ListedPortalSession extends PortalSessionRecord {
  keyRevokedAt: Date | null
}

/** The portal sessions of an account, as the base of a list. */
export function selectPortalSessions(db: Database, account: AccountId) {
  return selectRecord(db.selectFrom('portal_session'), portalSession)
    .select((eb) =>
      eb
        .selectFrom('api_key')
        .select('api_key.revoked_at')
        .whereRef('api_key.document_id', '=', 'portal_session.api_key')
        .as('keyRevokedAt'),
    )
    .where('account', '=', account)
}

/** Serializes the sessions of an account; otherwise two at the limit would both be created. */
const countLiving = countBehindLock<{ living: number }, { account: string; now: Date }>({
  counts: 'portal sessions of an account',
  lock: 'account',
  rows: 'select a.document_id from account a where a.document_id = $account and a.deleted_at is null',
  read: 'select living_portal_sessions(a.document_id, $now) as living from locked a',
})

/** Locks an account, and counts its open links and sessions. Undefined for an unknown account. */
export async function countLivingSessions(db: Database, account: string, now: Date): Promise<number | undefined> {
  const [row] = await countLiving(db, { account, now })
  return row?.living
}

type NewPortalSession = Pick<
  PortalSessionRecord,
  'id' | 'account' | 'apiKeyId' | 'role' | 'externalUser' | 'returnUrl' | 'lifetimeSeconds' | 'expiresAt'
> & { linkHash: Buffer; now: Date }

const insert = closingStatement<NewPortalSession>(`
  new_portal_session as (
    insert into portal_session (document_id, account, api_key, role, external_user, return_url, lifetime_seconds, link_hash,
      expires_at, created_at, updated_at)
    values ($id, $account, $apiKeyId, $role, $externalUser, $returnUrl, $lifetimeSeconds, $linkHash, $expiresAt, $now, $now))`)

/** Inserts a session whose link was not opened yet, with the last statement of the transaction. */
export async function insertPortalSession(db: Database, row: NewPortalSession): Promise<PortalSessionRecord> {
  const { linkHash: _, now, ...session } = row
  await insert(db, row)
  return { ...session, openedAt: null, revokedAt: null, createdAt: now, updatedAt: now }
}

/** A portal session by its link or token, with the facts of its validity. */
export interface FoundPortalSession extends PortalSessionRecord {
  accountName: string
  /** The owner of the API key. */
  userId: UserId
  /** Whether the key is neither revoked nor expired, its owner active, and the account not deleted. */
  isKeyLive: boolean
  keyExpiresAt: Date | null
}

const findBy = (condition: string) => `
  select ${portalSession.members('p')}, a.name as "accountName", k."user" as "userId", k.expires_at as "keyExpiresAt",
    (k.revoked_at is null and (k.expires_at is null or k.expires_at > $now) and a.deleted_at is null
      and u.is_actived and u.deleted_at is null) as "isKeyLive"
  from (select * from portal_session where ${condition} for no key update) p
  cross join lateral (select * from account where document_id = p.account offset 0) a
  cross join lateral (select * from api_key where document_id = p.api_key offset 0) k
  cross join lateral (select * from "user" where document_id = k."user" offset 0) u`

/** The session of a link, locked until the transaction ends: the second of two concurrent openings finds it open. */
export const lockByLink = rowStatement<FoundPortalSession, { hash: Buffer; now: Date }>(findBy('link_hash = $hash'))

/** The session of a token, locked in the same way. */
export const lockByToken = rowStatement<FoundPortalSession, { hash: Buffer; now: Date }>(findBy('token_hash = $hash'))

interface Opening {
  id: PortalSessionId
  tokenHash: Buffer
  expiresAt: Date
  now: Date
}

/** Opens a locked session, with the last statement of the transaction. */
export const openPortalSessionRow = closingStatement<Opening>(
  `
  opened_portal_session as (
    update portal_session set token_hash = $tokenHash, opened_at = $now, expires_at = $expiresAt, updated_at = $now
    where document_id = $id)`,
  ({ id }) => `v:${id}`,
)

/** Ends a locked session, with the last statement of the transaction. */
export const endPortalSessionRow = closingStatement<{ id: PortalSessionId; now: Date }>(
  `
  ended_portal_session as (
    update portal_session set revoked_at = $now, updated_at = $now where document_id = $id)`,
  ({ id }) => `v:${id}`,
)

/** Revokes a session of an account, or its link. Undefined when there is none with this id that has not ended. */
export const revokePortalSessionRow = rowStatement<PortalSessionRecord, { id: string; account: string; now: Date }>(`
  update portal_session p set revoked_at = $now, updated_at = $now
  where p.document_id = $id and p.account = $account and p.revoked_at is null and p.expires_at > $now
  returning ${portalSession.members('p')}`)

/** Deletes up to `limit` sessions that expired before `before`. Returns their number. For maintenance. */
export const deleteEndedPortalSessions = deletionOfOld('portal_session', { key: 'document_id', time: 'expires_at' })
