import type { AccountId, ConnectionId, Id, SessionId, UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import {
  aheadStatement,
  closingStatement,
  rowStatement,
  soleRowStatement,
} from '../../../postgres/statement/statement.ts'
import { type ConnectionRecord, connection } from '../connection.store.ts'

export type ConnectionIdentityId = Id<'connection identity'>

/** A locked connection, with its record of a person. */
export interface EntryPlace extends ConnectionRecord {
  hasAccount: boolean
  accountName: string
  /** The user of the subject, also a deleted one. */
  knownUser: UserId | null
  isKnownLiving: boolean
  /** Whether the asserted address is of a proven domain. */
  isInside: boolean
}

/**
 * Each part uses the one before, so that the locks are taken in this order: the account, the connection, the person. The lock
 * of the account serializes the sign-ins of its members, of whom the last administrator keeps its role.
 */
const lockPlace = rowStatement<EntryPlace, { id: string; subject: string; email: string }>(`
  with a as (
    select document_id, name from account
    where document_id = (select account from connection where document_id = $id) and deleted_at is null
    for no key update
  ), c as (
    select x.* from connection x, (select count(*) from a) locked where x.document_id = $id for share of x
  )
  select ${connection.members('c')}, group_roles_of(c.document_id) as "groupRoles", exists (select from a) as "hasAccount", coalesce((select a.name from a), '') as "accountName",
    k."user" as "knownUser", is_living_user(k."user") as "isKnownLiving",
    has_proven_domain(c.document_id, $email) as "isInside"
  from c left join lateral lock_connection_identity(c.document_id, $subject, $email) k on true`)

/** Locks a connection and a person at it until the transaction ends. Undefined for a connection that does not exist. */
export function lockEntryPlace(
  db: Database,
  input: { id: ConnectionId; subject: string; email: string | null },
): Promise<EntryPlace | undefined> {
  return lockPlace(db, { ...input, email: input.email ?? '' })
}

/** Facts about a locked user: `isOtherAdmin` is whether another active member has the role. */
export const findEntryFacts = soleRowStatement<
  { isOperator: boolean; isInside: boolean; hasOtherSubject: boolean; isOtherAdmin: boolean },
  { userId: UserId; connection: ConnectionId; account: AccountId; subject: string; role: string }
>(`
  select lock_is_operator($userId) as "isOperator",
    has_proven_domain($connection, (select u.email from "user" u where u.document_id = $userId)) as "isInside",
    exists (select from connection_identity i
      where i.connection = $connection and i."user" = $userId and i.subject <> $subject) as "hasOtherSubject",
    has_other_member_with($account, $userId, $role) as "isOtherAdmin"`)

/** The user of a session, in any state. */
export const findSessionUser = rowStatement<{ userId: UserId }, { session: SessionId }, UserId>(
  'select "user" as "userId" from session where document_id = $session',
  ({ userId }) => userId,
)

/** Whether a session of a locked user is open (once ended, a proof opens nothing), and whether its user is narrowed. */
export const findProvenSession = soleRowStatement<
  { isOpen: boolean; isNarrowed: boolean },
  { session: SessionId; userId: UserId; connection: ConnectionId; now: Date }
>(`
  select coalesce((select s."user" = $userId and s.parent is null and s.client_id is null and s.revoked_at is null
      and s.expires_at > $now from session s where s.document_id = $session), false) as "isOpen",
    exists (select from narrowing_of($userId) n where n.connection = $connection) as "isNarrowed"`)

/** Stores the proof of a session, with the next statement of the transaction. */
export const saveSessionProof = aheadStatement<{
  session: SessionId
  connection: ConnectionId
  expiresAt: Date
  now: Date
}>(`
  insert into connection_proof (session, connection, proven_at, expires_at)
  values ($session, $connection, $now, $expiresAt)
  on conflict (session, connection) do update set proven_at = excluded.proven_at, expires_at = excluded.expires_at`)

/** Stores the user of a locked person, with the last statement of the transaction. */
export const saveConnectionIdentity = closingStatement<{
  id: ConnectionIdentityId
  connection: ConnectionId
  subject: string
  userId: UserId
  now: Date
}>(`
  saved_connection_identity as (
    insert into connection_identity (document_id, connection, subject, "user", last_login_at, created_at, updated_at)
    values ($id, $connection, $subject, $userId, $now, $now, $now)
    on conflict (connection, subject) do update set "user" = excluded."user", last_login_at = excluded.last_login_at,
      updated_at = excluded.updated_at)`)
