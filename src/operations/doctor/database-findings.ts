import { SKEW_REPORTED_MS, SKEW_TRUSTED_MS } from '../../base/database-clock.ts'
import type { MigrationErrorCode } from '../../postgres/migration/migration-error.ts'
import { type Finding, fail, warn } from './finding.ts'

/** Facts that a database reports about itself and the user of the connection. */
export interface DatabaseFacts {
  /** `server_version_num`: 150004 for 15.4. */
  versionNumber: number
  encoding: string
  /** A standby, or a database whose transactions are read-only. */
  isReadOnly: boolean
  /** Whether the service's user may create tables in the schema `public`. */
  mayCreate: boolean
  /** Tables of the schema `public` that the user of the service does not own, and so cannot migrate. */
  foreignTables: number
  fsync: boolean
  fullPageWrites: boolean
  synchronousCommit: string
  /** `synchronous_standby_names`: the standbys that a commit waits for; empty for none. */
  synchronousStandbyNames: string
  /** Number of servers that receive its changes, without subscriptions. */
  standbys: number
  /** Number of those that a commit may wait for; a user who may not see which counts all. */
  synchronousStandbys: number
  /** Identifies the database and its copies (`pg_control_system`). */
  systemId: string
  maxConnections: number
  /** Connections that only superusers and other reserved roles get. */
  reservedConnections: number
  /** Open connections of the server, without the service's own. */
  usedConnections: number
  /** The time of the database, in milliseconds since the Unix epoch. */
  now: number
}

/** Requirements of the process on the database. */
export interface DatabaseNeeds {
  poolSize: number
  readPoolSize: number
  workerPoolSize: number
}

/** One for the lease, two for maintenance, two to LISTEN and NOTIFY, and one of the embedded realtime server. */
const OTHER_CONNECTIONS = 6

/** Classifies the database. */
export function classifyDatabase(facts: DatabaseFacts, needs: DatabaseNeeds): Finding[] {
  return [...classifyServer(facts), ...classifyDurability(facts), ...classifyConnections(facts, needs)]
}

function classifyServer(facts: DatabaseFacts): Finding[] {
  const findings: Finding[] = []
  const major = Math.floor(facts.versionNumber / 10_000)
  if (major < 15)
    findings.push(fail('database_too_old', `The database is PostgreSQL ${major}.`, 'Use PostgreSQL 15 or newer.'))
  if (facts.isReadOnly)
    findings.push(
      fail(
        'database_read_only',
        'The database is a standby, or its transactions are read-only.',
        'Set DATABASE_URL to the primary server.',
      ),
    )
  if (!facts.mayCreate || facts.foreignTables > 0)
    findings.push(
      fail(
        'database_without_privilege',
        facts.mayCreate
          ? `The user of DATABASE_URL does not own ${facts.foreignTables} tables of the schema public.`
          : 'The user of DATABASE_URL may not create tables in the schema public.',
        'Make it the owner of the database and of its tables, or grant it CREATE on the schema public.',
      ),
    )
  if (facts.encoding !== 'UTF8')
    findings.push(
      fail(
        'database_encoding',
        `The encoding of the database is ${facts.encoding}.`,
        "Create the database with encoding 'UTF8'.",
      ),
    )
  return findings
}

function classifyDurability(facts: DatabaseFacts): Finding[] {
  const off = [!facts.fsync && 'fsync', !facts.fullPageWrites && 'full_page_writes'].filter(Boolean)
  const findings: Finding[] = []
  if (off.length > 0)
    findings.push(
      fail(
        'database_not_durable',
        `${off.join(' and ')} of the server is off: a crash of its machine may destroy the database.`,
        `Set ${off.join(' and ')} to on in postgresql.conf.`,
      ),
    )
  if (facts.synchronousCommit === 'off')
    findings.push(
      warn(
        'database_loses_commits',
        'synchronous_commit is off: a crash of the server loses the changes of its last moments, which clients saw succeed.',
        'Set synchronous_commit to on.',
      ),
    )
  if (facts.standbys > 0 && (facts.synchronousStandbyNames === '' || facts.synchronousCommit === 'local'))
    findings.push(
      warn(
        'database_standby_asynchronous',
        'No commit waits for a standby: its promotion may lose the last changes that clients saw succeed, and take back attempts, so that a sixth POST is possible.',
        'Set synchronous_standby_names, and synchronous_commit to on.',
      ),
    )
  const isWaiting = !facts.isReadOnly && !['off', 'local'].includes(facts.synchronousCommit)
  if (isWaiting && facts.synchronousStandbyNames !== '' && facts.synchronousStandbys === 0)
    findings.push(
      fail(
        'database_commits_wait',
        `Every commit waits for a standby of synchronous_standby_names (${facts.synchronousStandbyNames}), and none is connected, as after a promotion.`,
        'Start that standby, or run: alter system reset synchronous_standby_names; select pg_reload_conf();',
      ),
    )
  return findings
}

function classifyConnections(facts: DatabaseFacts, needs: DatabaseNeeds): Finding[] {
  const needed = needs.poolSize + needs.readPoolSize + needs.workerPoolSize + OTHER_CONNECTIONS
  const available = facts.maxConnections - facts.reservedConnections
  const figures = `A process opens up to ${needed} connections (DATABASE_POOL_SIZE ${needs.poolSize}, DATABASE_READ_POOL_SIZE ${needs.readPoolSize}, DATABASE_WORKER_POOL_SIZE ${needs.workerPoolSize}, ${OTHER_CONNECTIONS} more)`
  const remedy =
    'Raise max_connections of the server, or lower DATABASE_POOL_SIZE, DATABASE_READ_POOL_SIZE or DATABASE_WORKER_POOL_SIZE.'
  if (needed > available)
    return [fail('database_connections_short', `${figures}; the server has ${available} for ordinary users.`, remedy)]
  if (needed > available - facts.usedConnections)
    return [
      warn(
        'database_connections_used',
        `${figures}; the server has ${available} for ordinary users, and ${facts.usedConnections} are open now.`,
        remedy,
      ),
    ]
  return []
}

/** The schema against the files of this program, or why it cannot be used. */
export type SchemaFacts =
  | { pending: readonly { name: string; isAdditive: boolean }[]; ahead: readonly string[] }
  | { error: MigrationErrorCode; message: string }

/** Classifies the schema. */
export function classifySchema(facts: SchemaFacts): Finding[] {
  if ('error' in facts) return [fail('schema_unusable', facts.message, `See docs/operations.md, ${facts.error}.`)]
  const { pending, ahead } = facts
  if (ahead.length > 0)
    return [
      warn(
        'schema_newer',
        `A newer release migrated the database (${ahead.join(', ')}); its migrations are additive, so this release runs on it.`,
        'Nothing, in a rolling upgrade or after a rollback. Else start the newer release.',
      ),
    ]
  if (pending.length === 0) return []
  const breaking = pending.filter(({ isAdditive }) => !isAdditive).length
  return [
    warn(
      'schema_behind',
      `${pending.length} migrations have not run, ${breaking} of them not additive; the first is ${pending[0]?.name}.`,
      breaking > 0
        ? 'Stop the processes of the release before, take a backup, and run: signalbox migrate'
        : 'Run: signalbox migrate (the next start does it too).',
    ),
  ]
}

/** Classifies the clock of this machine against that of the database, both in milliseconds since the Unix epoch. */
export function classifyClock({ here, database }: { here: number; database: number }): Finding[] {
  const difference = Math.abs(here - database)
  if (difference <= SKEW_REPORTED_MS) return []
  const isTrusted = difference <= SKEW_TRUSTED_MS
  const build = isTrusted ? warn : fail
  const direction = here > database ? 'ahead of' : 'behind'
  return [
    build(
      'clock_differs',
      `The clock of this machine is ${(difference / 1000).toFixed(1)} s ${direction} that of the database.${isTrusted ? '' : ' A process here claims nothing, deletes nothing and is not ready.'}`,
      'Synchronize the clocks of all machines (chrony, systemd-timesyncd).',
    ),
  ]
}
