import type { AccountId, ConnectionId, SessionId, UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { aheadStatement, soleRowStatement } from '../../postgres/statement/statement.ts'

/**
 * Locks an account against new members, with the next statement of the transaction: a change that closes the ways in of
 * its members sees each of them, or is seen by a joining user.
 */
export const lockJoinsOf = aheadStatement<{ account: AccountId }>(
  'select from account where document_id = $account for no key update',
)

/** Locks the users of a locked connection, with the next statement of the transaction. */
export const lockConnectionUsers = aheadStatement<{ id: ConnectionId }>('select from lock_connection_users($id, null)')

const endAccess = aheadStatement<{ id: ConnectionId; domain: string | null; forgets: boolean; now: Date }>(
  'select from end_connection_access($id, $domain, $forgets, $now)',
)

/**
 * Ends the access that users of a locked connection opened, of all its domains or of one, with the next statement of
 * the transaction. With `forgets` the connection no longer knows them.
 */
export async function endConnectionAccess(
  db: Database,
  { id, domain = null, forgets, now }: { id: ConnectionId; domain?: string | null; forgets: boolean; now: Date },
): Promise<void> {
  await endAccess(db, { id, domain, forgets, now })
}

/** Ends the access that users of every connection of an account opened, with the next statement of the transaction. */
export const endAccessOfAccount = aheadStatement<{ account: AccountId; now: Date }>(
  'select from end_account_connections($account, $now)',
)

/** The user who closes ways in, and the session that asked; null for an API key. */
export interface Spared {
  userId: UserId
  sessionId: SessionId | null
}

const endClosed = aheadStatement<{
  id: ConnectionId
  domain: string | null
  spared: UserId
  sparedSession: SessionId | null
  now: Date
}>('select from end_closed_access($id, $domain, $spared, $sparedSession, $now)')

/**
 * Ends the access that members opened by ways in that a connection now closes, of all its proven domains or of one,
 * with the next statement of the transaction; members of several accounts lack the account from then on. `spared` is who
 * closes them.
 */
export async function endClosedAccess(
  db: Database,
  { id, domain = null, spared, now }: { id: ConnectionId; domain?: string | null; spared: Spared; now: Date },
): Promise<void> {
  await endClosed(db, { id, domain, spared: spared.userId, sparedSession: spared.sessionId, now })
}

/** Opens the account of a connection, which closes no ways any more, to the unproven sessions of its members. */
export const endNarrowing = aheadStatement<{ id: ConnectionId }>('select from end_narrowing($id)')

/**
 * Removes a locked user from an account, with the next statement of the transaction. The connections of the account no
 * longer know it, and what they opened ends; so does what the user opened by ways that its only other account closes.
 */
export const removeMemberOf = aheadStatement<{ userId: UserId; account: AccountId; now: Date }>(
  'select from remove_member($userId, $account, $now)',
)

/** Whether an account signs members with this address in by one of its connections alone. */
export const isClosedFor = soleRowStatement<{ isClosed: boolean }, { account: AccountId; email: string }, boolean>(
  `select exists (select from connection_domain d
    where d.domain = domain_of($email) and d.verified_at is not null and d.account = $account
      and (select c.is_enabled and c.is_enforced from connection c where c.document_id = d.connection)) as "isClosed"`,
  ({ isClosed }) => isClosed,
)
