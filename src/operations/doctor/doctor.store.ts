import { soleRowStatement, statement } from '../../postgres/statement/statement.ts'
import type { DatabaseFacts } from './database-findings.ts'
import type { ReplicaFacts } from './replica-findings.ts'
import type { KeyUse } from './setting-findings.ts'

interface ServerRow extends Omit<DatabaseFacts, 'fsync' | 'fullPageWrites'> {
  fsync: string
  fullPageWrites: string
}

/** Reads the facts of the database. */
export const readDatabaseFacts = soleRowStatement<ServerRow, undefined, DatabaseFacts>(
  `
  select current_setting('server_version_num')::int as "versionNumber",
    current_setting('server_encoding') as encoding,
    pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as "isReadOnly",
    has_schema_privilege('public', 'create') as "mayCreate",
    (select count(*) from pg_tables where schemaname = 'public' and not pg_has_role(tableowner, 'usage')) as "foreignTables",
    current_setting('fsync') as fsync,
    current_setting('full_page_writes') as "fullPageWrites",
    current_setting('synchronous_commit') as "synchronousCommit",
    current_setting('synchronous_standby_names') as "synchronousStandbyNames",
    receivers.standbys, receivers."synchronousStandbys",
    (select system_identifier::text from pg_control_system()) as "systemId",
    current_setting('max_connections')::int as "maxConnections",
    current_setting('superuser_reserved_connections')::int
      + coalesce(current_setting('reserved_connections', true)::int, 0) as "reservedConnections",
    (select sum(numbackends) - 1 from pg_stat_database)::int as "usedConnections",
    (extract(epoch from clock_timestamp()) * 1000)::float8 as now
  from (
    select count(*) as standbys,
      count(*) filter (where r.sync_state is null or r.sync_state in ('sync', 'quorum')) as "synchronousStandbys"
    from pg_stat_replication r
    where not exists (select from pg_replication_slots s where s.slot_type = 'logical' and s.active_pid = r.pid)
  ) receivers`,
  ({ fsync, fullPageWrites, ...row }) => ({ ...row, fsync: fsync === 'on', fullPageWrites: fullPageWrites === 'on' }),
)

/** Reads the facts of the server of `DATABASE_READ_URL`. */
export const readReplicaFacts = soleRowStatement<ReplicaFacts>(`
  select pg_is_in_recovery() as "isStandby",
    (select system_identifier::text from pg_control_system()) as "systemId",
    pg_has_role('pg_read_all_stats', 'usage') as "maySeeReceiver",
    exists (select from pg_stat_wal_receiver where received_tli is not null) as "isReceiving"`)

/** Counts the stored secrets by kind and key: ciphertexts are `v1.<key id>. ...` (src/base/keyring.ts). */
export const countStoredSecrets = statement<KeyUse>(`
  select kind, split_part(sealed, '.', 2) as "keyId", count(*) as count from (
    select 'webhook secrets' as kind, secret_encrypted as sealed from webhook where deleted_at is null
    union all
    select 'webhook headers', headers_encrypted from webhook where deleted_at is null
    union all
    select 'webhook signing keys', signing_key_encrypted from webhook where deleted_at is null
    union all
    select 'provisioning secrets', secret_encrypted from provisioning_target where deleted_at is null
    union all
    select 'authenticator apps', secret_encrypted from totp_factor
    union all
    select 'signing keys', private_key from oauth_signing_key
  ) s where sealed is not null group by 1, 2 order by 1, 2`)
