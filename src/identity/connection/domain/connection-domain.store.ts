import type { AccountId, ConnectionId, Id } from '../../../base/id.ts'
import { deletionOfOld } from '../../../postgres/retention.ts'
import { countBehindLock } from '../../../postgres/statement/counted-limit.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../../postgres/statement/record.ts'
import { closingStatement, rowStatement, statement } from '../../../postgres/statement/statement.ts'

export type ConnectionDomainId = Id<'connection domain'>

/** A domain of e-mail addresses that a connection claims, or has proven. */
export const connectionDomain = defineRecord('connection_domain', [
  'document_id',
  'connection',
  'account',
  'domain',
  'token',
  'verified_at',
  'verified_by',
  'checked_at',
  'expires_at',
  'created_at',
  'updated_at',
])
export type ConnectionDomainRecord = RecordOf<typeof connectionDomain>

/** The domains of a connection, as the base of a list. */
export function selectConnectionDomains(db: Database, input: { account: AccountId; connection: string }) {
  return selectRecord(db.selectFrom('connection_domain'), connectionDomain)
    .where('connection', '=', input.connection)
    .where('account', '=', input.account)
}

const FIND = `select ${connectionDomain.members()} from connection_domain where document_id = $id`
/** The domain with this id, and the same locked until the transaction ends. */
export const findConnectionDomain = rowStatement<ConnectionDomainRecord, { id: string }>(FIND)
export const lockConnectionDomain = rowStatement<ConnectionDomainRecord, { id: string }>(`${FIND} for update`)

/** Additions to one connection are serialized, so that they count each other. */
const countDomains = countBehindLock<{ domains: number }, { connection: string }>({
  counts: 'domains of a connection',
  lock: 'connection',
  rows: 'select c.document_id from connection c where c.document_id = $connection',
  read: 'select count_connection_domains(c.document_id) as domains from locked c',
})

/** Locks a connection until the transaction ends, and counts its domains. Undefined for an unknown connection. */
export async function countDomainsOf(db: Database, connection: string): Promise<number | undefined> {
  return (await countDomains(db, { connection }))[0]?.domains
}

interface NewDomain {
  id: ConnectionDomainId
  connection: ConnectionId
  account: AccountId
  domain: string
  token: string
  expiresAt: Date
  now: Date
}

/** Inserts an unproven claim, in place of an expired one. Undefined when the connection has the domain already. */
export const insertConnectionDomain = rowStatement<ConnectionDomainRecord, NewDomain>(`
  insert into connection_domain (document_id, connection, account, domain, token, expires_at, created_at, updated_at)
  values ($id, $connection, $account, $domain, $token, $expiresAt, $now, $now)
  on conflict (connection, domain) do update set document_id = excluded.document_id, token = excluded.token,
    checked_at = null, expires_at = excluded.expires_at, created_at = excluded.created_at, updated_at = excluded.updated_at
    where connection_domain.expires_at <= $now
  returning ${connectionDomain.members()}`)

/** Records a check; undefined when one began after `before`: of parallel requests one asks the name servers. */
export const noteCheck = rowStatement<{ id: ConnectionDomainId }, { id: string; before: Date; now: Date }>(`
  update connection_domain set checked_at = $now
  where document_id = $id and (checked_at is null or checked_at <= $before) returning document_id as id`)

/** Marks a locked domain as proven. Rejects by `connection_domain_verified_key` when it is proven elsewhere. */
export const markVerified = statement<{ id: ConnectionDomainId }, { id: string; by: 'dns' | 'operator'; now: Date }>(`
  update connection_domain set verified_at = $now, verified_by = $by, expires_at = null, updated_at = $now
  where document_id = $id returning document_id as id`)

/** Deletes a locked domain, with the last statement of the transaction. */
export const deleteConnectionDomainRow = closingStatement<{ id: ConnectionDomainId }>(
  'removed_domain as (delete from connection_domain where document_id = $id)',
)

/** The enabled connection that has proven a domain. */
export const findConnectionOfDomain = rowStatement<
  { connection: ConnectionId; name: string; isEnforced: boolean },
  { domain: string }
>(`
  select c.document_id as connection, c.name, c.is_enforced as "isEnforced"
  from connection_domain d
  cross join lateral (select * from connection x where x.document_id = d.connection offset 0) c
  where d.domain = $domain and d.verified_at is not null and c.is_enabled
    and (select a.deleted_at is null from account a where a.document_id = c.account)`)

/** Deletes up to `limit` claims that expired unproven before `before`. Returns their number. For maintenance. */
export const deleteExpiredDomains = deletionOfOld('connection_domain', { key: 'document_id', time: 'expires_at' })
