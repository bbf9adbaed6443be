import { type Finding, warn } from './finding.ts'

/** Facts of the server of `DATABASE_READ_URL`. */
export interface ReplicaFacts {
  isStandby: boolean
  /** Identifies the database and its copies (`pg_control_system`). */
  systemId: string
  /** Whether its user may read `pg_stat_wal_receiver`. */
  maySeeReceiver: boolean
  /** Whether it receives the changes of another server; false when its user may not see that. */
  isReceiving: boolean
}

/** Classifies the replica: without it the primary reads, so each finding is a warning. */
export function classifyReplica(facts: ReplicaFacts | { error: string }, primary: { systemId: string }): Finding[] {
  if ('error' in facts)
    return [warn('replica_unreachable', facts.error, 'Correct DATABASE_READ_URL, or start the replica.')]
  if (facts.systemId !== primary.systemId)
    return [
      warn(
        'replica_unproven',
        'DATABASE_READ_URL leads to a server of another database: its timeline may be the same by chance.',
        'Set DATABASE_READ_URL to a streaming standby of the server of DATABASE_URL.',
      ),
    ]
  if (!facts.isStandby)
    return [
      warn(
        'replica_is_primary',
        'DATABASE_READ_URL leads to the primary: reads cost two statements more and relieve nothing.',
        'Set DATABASE_READ_URL to a standby, or remove it.',
      ),
    ]
  if (!facts.maySeeReceiver)
    return [
      warn(
        'replica_unproven',
        'The user of DATABASE_READ_URL may not read which timeline the standby receives, so it is never used.',
        'Run on the primary, for the user of DATABASE_READ_URL: grant pg_read_all_stats to <user>',
      ),
    ]
  if (!facts.isReceiving)
    return [
      warn(
        'replica_unproven',
        'The standby of DATABASE_READ_URL receives nothing from another server, so it is never used.',
        'Check primary_conninfo and the log of the standby.',
      ),
    ]
  return []
}
