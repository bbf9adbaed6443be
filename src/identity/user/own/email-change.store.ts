import type { SessionId, UserId } from '../../../base/id.ts'
import { deletionOfOld } from '../../../postgres/retention.ts'
import { countBehindLock } from '../../../postgres/statement/counted-limit.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { closingStatement, isAfter, rowStatement, testStatement } from '../../../postgres/statement/statement.ts'
import { mailRoomOf } from '../../mail/mail-room.ts'
import { OF_USER, rolesOfUser, type UserWithRoles } from '../../user-record/user.store.ts'

/** A new change of the own address. */
export interface NewEmailChange {
  id: string
  userId: UserId
  /** The requesting session. */
  session: SessionId
  newEmail: string
  oldEmail: string
  newTokenHash: Buffer
  oldTokenHash: Buffer
  expiresAt: Date
  now: Date
}

/** A user who asks for another address. */
interface EmailChangeUser {
  email: string
  /** Changes that the user asked for after a time. */
  recent: number
  isConnected: boolean
  /** Mails of changes that the new address may still get. */
  room: number
}

const count = countBehindLock<EmailChangeUser, { userId: UserId; newEmail: string | null; since: Date }>({
  counts: 'changes of the own address in a day',
  lock: 'user',
  rows: 'select u.document_id, u.email from "user" u where u.document_id = $userId and u.deleted_at is null',
  read: `select l.email, count_email_changes(l.document_id, $since) as recent,
    has_fixed_address(l.document_id) as "isConnected",
    case when $newEmail::text is null then 0 else ${mailRoomOf('email-change', '$newEmail::text')} end as room
    from locked l`,
})

/** Locks a user, and counts the changes of its address since `since`; with `newEmail`, also its room. */
export async function lockForEmailChange(
  db: Database,
  { userId, newEmail, since }: { userId: UserId; newEmail?: string; since: Date },
): Promise<EmailChangeUser | undefined> {
  const [row] = await count(db, { userId, newEmail: newEmail ?? null, since })
  return row
}

/** Replaces the open change of a locked user, with the last statement of the transaction. */
export const replaceEmailChange = closingStatement<NewEmailChange>(`
  replaced_email_change as (update email_change set ended_at = $now where "user" = $userId and ended_at is null),
  new_email_change as (
    insert into email_change (document_id, "user", session, new_email, old_email, new_token_hash, old_token_hash,
      expires_at, created_at)
    values ($id, $userId, $session, $newEmail, $oldEmail, $newTokenHash, $oldTokenHash, $expiresAt, $now))`)

/** A change that waits for the confirmation of one address, or of both. */
export interface OpenEmailChange {
  newEmail: string
  isNewConfirmed: boolean
  isOldConfirmed: boolean
  askedAt: Date
  validUntil: Date
}

/** The user with its open change. */
export interface OwnUser extends UserWithRoles {
  emailChange: OpenEmailChange | null
}

type OwnRow = UserWithRoles & Omit<OpenEmailChange, 'newEmail'> & { newEmail: string | null }

/** The user with this id, not deleted, with its open change of the address. */
export const findOwnUser = rowStatement<OwnRow, { id: UserId; now: Date }, OwnUser>(
  `select ${OF_USER}, ${rolesOfUser('document_id')} as roles, c.new_email as "newEmail",
    c.new_token_hash is null as "isNewConfirmed", c.old_token_hash is null as "isOldConfirmed",
    c.created_at as "askedAt", c.expires_at as "validUntil"
  from "user" u
  left join lateral (
    select x.* from email_change x
    where x."user" = u.document_id and x.ended_at is null and ${isAfter('x.expires_at', '$now')}
      and email_key(x.old_email) = email_key(u.email)
    order by x.created_at desc limit 1) c on true
  where u.document_id = $id and u.deleted_at is null`,
  ({ newEmail, isNewConfirmed, isOldConfirmed, askedAt, validUntil, ...user }) => ({
    ...user,
    emailChange: newEmail === null ? null : { newEmail, isNewConfirmed, isOldConfirmed, askedAt, validUntil },
  }),
)

/** A change that one of its links confirms, behind the lock of its user. */
export interface ConfirmedEmailChange {
  id: string
  userId: UserId
  session: SessionId
  newEmail: string
  /** Whether the link was sent to the new address. */
  isNew: boolean
  /** Whether the other link was used. */
  isOtherConfirmed: boolean
  /** Whether another user has the new address. */
  isTaken: boolean
  /** Whether an account of the user signs members with the new address in by a connection alone. */
  isClosedThere: boolean
}

/** A presented link. */
interface PresentedLink {
  tokenHash: Buffer
  now: Date
}

/**
 * Locks the active user of a link until the transaction ends, and reads the change behind the lock. Undefined when the
 * link is unknown, used or expired, or the change was ended.
 */
export const lockConfirmedChange = rowStatement<ConfirmedEmailChange, PresentedLink>(`
  with u as (
    select * from "user"
    where document_id = coalesce(
        (select c."user" from email_change c where c.new_token_hash = $tokenHash),
        (select c."user" from email_change c where c.old_token_hash = $tokenHash))
      and is_actived and deleted_at is null
    for no key update
  )
  select c.document_id as id, u.document_id as "userId", c.session, c.new_email as "newEmail",
    (c.new_token_hash = $tokenHash) is true as "isNew",
    case when c.new_token_hash = $tokenHash then c.old_token_hash else c.new_token_hash end is null as "isOtherConfirmed",
    exists (select from "user" o where email_key(o.email) = email_key(c.new_email) and o.deleted_at is null
      and not o.is_email_shadowed and o.document_id <> u.document_id) as "isTaken",
    lock_is_closed(u.document_id, c.new_email) as "isClosedThere"
  from u cross join lateral email_change_of(u.document_id, $tokenHash, $now) c
  where email_key(c.old_email) = email_key(u.email) and not has_fixed_address(u.document_id)`)

/** Spends one link of a change, whose user is locked, with the last statement of the transaction. */
export const confirmEmailChange = closingStatement<{ id: string; isNew: boolean }>(`
  confirmed_email_change as (
    update email_change
    set new_token_hash = case when $isNew then null else new_token_hash end,
      old_token_hash = case when $isNew then old_token_hash else null end
    where document_id = $id)`)

/** Ends the open change of a locked user. False without one. */
export const endEmailChange = testStatement<{ userId: UserId; now: Date }>(
  'update email_change set ended_at = $now where "user" = $userId and ended_at is null and expires_at > $now',
)

/** Deletes up to `limit` changes that were asked for before `before`. Returns their number. For maintenance. */
export const deleteOldEmailChanges = deletionOfOld('email_change', { key: 'document_id', time: 'created_at' })
