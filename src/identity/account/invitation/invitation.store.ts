import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { AccountId, Id, UserId } from '../../../base/id.ts'
import { columnsOf, wireOf } from '../../../http/shape/wire-row.ts'
import { deletionOfOld } from '../../../postgres/retention.ts'
import { countBehindLock } from '../../../postgres/statement/counted-limit.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { ADVISORY_LOCKS } from '../../../postgres/statement/locks.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../../postgres/statement/record.ts'
import { aheadStatement, rowStatement, statement } from '../../../postgres/statement/statement.ts'
import { HOLDINGS, HOLDINGS_OF_USER } from '../../access/delegation.store.ts'
import type { Holdings } from '../../access/delegation.ts'
import type { RoleId } from '../../access/role.store.ts'
import { foldEmail } from '../../user-record/email-key.ts'
import { InvitationRow } from './invitation.schema.ts'

export type InvitationId = Id<'invitation'>

/** An invitation, without the hash of its token. */
const invitation = defineRecord(
  'account_invitation',
  columnsOf(InvitationRow).filter((column) => column !== 'status'),
).typed<{ roles: RoleId[] }>()
export type InvitationRecord = RecordOf<typeof invitation>
export const toStoredInvitationRow = wireOf(invitation, InvitationRow)

/** Whether an invitation is to one of these addresses, in any case (docs/contract/identity.md#e-mail-addresses). */
export const isOneOfEmails = (email: RawBuilder<unknown>, emails: readonly string[]) =>
  sql<SqlBool>`email_key(${email}) = any(${emails.map(foldEmail)}::text[])`

/** The invitations of an account, as the base of a list. Empty for an account that does not exist. */
export function selectInvitations(db: Database, account: AccountId) {
  return selectRecord(db.selectFrom('account_invitation'), invitation)
    .where('account', '=', account)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('account')
          .select('account.document_id')
          .where('account.document_id', '=', account)
          .where('account.deleted_at', 'is', null),
      ),
    )
}

/** Numbers that limit a new invitation. */
interface InvitationCounts {
  /** Open ones of the account to other addresses. */
  open: number
  /** Those of the account since a time, and among them those to the address. */
  recent: number
  recentTo: number
}

/** Serializes the invitations of an account: two for one address, or two at a limit, would both be created. */
const countRecent = countBehindLock<InvitationCounts, { account: AccountId; email: string; now: Date; since: Date }>({
  counts: 'invitations of an account',
  lock: 'invitations',
  take: `select from (
    select pg_advisory_xact_lock(hashtextextended('${ADVISORY_LOCKS.invitations.key}' || $account::text, 0))) locked`,
  count: `
    select count(*) filter (where accepted_at is null and revoked_at is null and expires_at > $now
        and email_key(email) <> email_key($email))::int as open,
      count(*) filter (where created_at > $since)::int as recent,
      count(*) filter (where created_at > $since and email_key(email) = email_key($email))::int as "recentTo"
    from account_invitation where account = $account`,
})

/** Counts the invitations of an account. No other transaction creates one until this one ends. */
export async function countInvitations(
  db: Database,
  account: AccountId,
  { email, now, since }: { email: string; now: Date; since: Date },
): Promise<InvitationCounts> {
  const [row] = await countRecent(db, { account, email, now, since })
  if (!row) throw new Error('the statement that counts invitations returns a row')
  return row
}

const revokeOlder = aheadStatement<{ account: AccountId; email: string; now: Date }>(`
  update account_invitation set revoked_at = $now, updated_at = $now
  where account = $account and email_key(email) = email_key($email) and accepted_at is null and revoked_at is null`)

/** A new invitation. */
type NewInvitation = Pick<InvitationRecord, 'id' | 'account' | 'email' | 'roles' | 'invitedBy' | 'expiresAt'> & {
  tokenHash: Buffer
  /** Permissions that the token of the inviter holds in the account. */
  tokenPatterns: readonly string[]
  now: Date
}

const insert = aheadStatement<NewInvitation>(`
  insert into account_invitation
    (document_id, account, email, roles, token_hash, invited_by, token_patterns, expires_at, created_at, updated_at)
  values ($id, $account, $email, $roles, $tokenHash, $invitedBy, $tokenPatterns, $expiresAt, $now, $now)`)

/** Inserts an invitation in place of the open one to the same address; sent with the next statement. */
export async function replaceInvitation(db: Database, row: NewInvitation): Promise<InvitationRecord> {
  const { tokenHash, tokenPatterns, now, ...made } = row
  await revokeOlder(db, row)
  await insert(db, row)
  return { ...made, acceptedAt: null, acceptedBy: null, revokedAt: null, createdAt: now, updatedAt: now }
}

/** The invitation with this id, of this account. */
export const findInvitation = rowStatement<InvitationRecord, { id: string; account: AccountId }>(
  `select ${invitation.members('i')} from account_invitation i where i.document_id = $id and i.account = $account`,
)

/** Revokes an invitation that is neither accepted nor revoked. Undefined when there is none. */
export const revokeOpenInvitation = rowStatement<InvitationRecord, { id: string; account: AccountId; now: Date }>(`
  update account_invitation i set revoked_at = $now, updated_at = $now
  where i.document_id = $id and i.account = $account and i.accepted_at is null and i.revoked_at is null
  returning ${invitation.members('i')}`)

/** An invitation that may be accepted, with its account. */
export interface OpenInvitation extends InvitationRecord {
  accountName: string
  /** Permissions that the token of the inviter held in the account; null for an older invitation. */
  tokenPatterns: string[] | null
}

const OPEN = 'i.token_hash = $tokenHash and i.accepted_at is null and i.revoked_at is null and i.expires_at > $now'
const COLUMNS_OF_OPEN = `${invitation.members('i')}, i.token_patterns as "tokenPatterns", a.name as "accountName"`
const selectOpen = statement<OpenInvitation, { tokenHash: Buffer; now: Date }>(`
  select ${COLUMNS_OF_OPEN} from account_invitation i
  cross join lateral (select * from account x where x.document_id = i.account offset 0) a
  where ${OPEN} and a.deleted_at is null`)

/** The account before its invitation. An invitation never moves to another account. */
const lockOpen = statement<OpenInvitation, { tokenHash: Buffer; now: Date }>(`
  with a as (
    select x.document_id, x.name from account x
    where x.document_id = (select account from account_invitation where token_hash = $tokenHash)
      and x.deleted_at is null for share
  )
  select ${COLUMNS_OF_OPEN} from a join account_invitation i on i.account = a.document_id where ${OPEN} for update of i`)

/** The open invitation with this token; `lock` keeps it and its account until the transaction ends. */
export async function findOpenInvitation(
  db: Database,
  { tokenHash, now, lock }: { tokenHash: Buffer; now: Date; lock: boolean },
): Promise<OpenInvitation | undefined> {
  const [row] = await (lock ? lockOpen : selectOpen)(db, { tokenHash, now })
  return row
}

/** Whether an open invitation of an account is for this address, as SQL. */
export const hasOpenInvitation = (email: string, now: string): string => `exists (
    select from (select * from account_invitation x where email_key(x.email) = email_key(${email}) offset 0) i
    where i.accepted_at is null and i.revoked_at is null and i.expires_at > ${now}
      and exists (select from account a where a.document_id = i.account and a.deleted_at is null))`

/** Marks a locked invitation as accepted; sent with the next statement of the transaction. */
export const markAccepted = aheadStatement<{ id: InvitationId; by: UserId; now: Date }>(`
  update account_invitation set accepted_at = $now, accepted_by = $by, updated_at = $now where document_id = $id`)

/** Permissions of an active user, with its address. */
export const findActiveUser = rowStatement<{ email: string; holdings: Holdings }, { id: UserId }>(`
  select u.email, ${HOLDINGS} from "user" u ${HOLDINGS_OF_USER}
  where u.document_id = $id and u.is_actived and u.deleted_at is null`)

/** Deletes up to `limit` invitations that were accepted, revoked or expired before `before`. Returns their number. */
export const deleteEndedInvitations = deletionOfOld('account_invitation', {
  key: 'document_id',
  time: 'least(expires_at, accepted_at, revoked_at)',
})
