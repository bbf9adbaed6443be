import type { Logger } from 'pino'
import { readMonotonicMs, systemClock } from '../base/clock.ts'
import { buildReplicaChoice, type ReplicaChoice, type ReplicaState } from './connection/replica.ts'
import { readPrimaryPosition } from './primary-position.store.ts'
import { type DatabasePool, openDatabase, READ_LIMITS } from './statement/database.ts'

/** Timeout of a connection to the replica, after which the primary serves the read. */
const CONNECT_LIMIT_MS = 1_000

/** The pool of reads on the replica. */
export interface ReplicaPool extends DatabasePool {
  replica(): ReplicaState
}

/** Opens the pool of reads on the replica of `connectionString`. */
export function openReplica(options: {
  /** The pool of requests, which asks for the position of the primary. */
  database: DatabasePool
  /** The pool of reads on the primary. */
  readDatabase: DatabasePool
  connectionString: string
  size: number
  settings: string
  lagLimitMs: number
  logger: Logger
  onError: (error: Error) => void
}): ReplicaPool {
  const { database, readDatabase, logger, lagLimitMs } = options
  let choice: ReplicaChoice | undefined
  const pool = openDatabase({
    ...{ connectionString: options.connectionString, size: options.size, settings: options.settings },
    ...{ applicationName: 'signalbox replica', limits: READ_LIMITS, connectLimitMs: CONNECT_LIMIT_MS },
    onError: options.onError,
    choose: (connectReplica) => {
      const built = buildReplicaChoice({
        ...{ connectReplica, lagLimitMs, monotonicMs: readMonotonicMs, sleep: systemClock.sleep },
        readPosition: () => readPrimaryPosition(database.db),
        connectPrimary: readDatabase.connect,
        onStatus: (status) => {
          if (status === 'used') logger.info('the read replica is used again')
          else if (status === 'primary')
            logger.warn('the read replica is the primary, and relieves nothing: see docs/operations.md, replica')
          else logger.warn({ status }, 'the read replica is not used: see docs/operations.md, replica')
        },
      })
      choice = built
      return built.connect
    },
  })
  const unknown: ReplicaState = { status: 'unavailable', lagBytes: undefined, reads: { replica: 0, primary: 0 } }
  return { ...pool, replica: () => choice?.state() ?? unknown }
}
