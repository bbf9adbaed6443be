import { buildIdMaker } from '../../base/id.ts'
import { alignClock } from '../../postgres/database-time.store.ts'
import { migrateSchema } from '../../postgres/migration/migrate.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { FatalError } from '../log/fatal.ts'
import { runUntilFree } from './begin-again.ts'
import { waitForDatabase } from './database-wait.ts'
import type { Resources, ResourcesOptions } from './resources.ts'

const INSUFFICIENT_PRIVILEGE = '42501'

/** Events reach the outbox of the event log from here on. Throws a `FatalError` without the right to create a trigger. */
async function openEventLog(db: Database): Promise<void> {
  const { openOutbox } = await import('../../carriage/relay/outbox.store.ts')
  await openOutbox(db).catch((error: { code?: string }) => {
    if (error.code !== INSUFFICIENT_PRIVILEGE) throw error
    throw new FatalError(
      'The user of DATABASE_URL may not create the trigger of the event log: see docs/operations/event-log.md, turning it on.',
    )
  })
}

type Prepares = Pick<Resources, 'connectionString' | 'database'>

/** Result of the preparation of a database. */
export interface Prepared {
  migrations: string[]
  /** Additive migrations of a newer release that ran before. */
  ahead: string[]
}

/**
 * Prepares a database for this program: migrations, then the rows of its declarations. Idempotent; safe in concurrent
 * processes. After a migration by a newer release, its catalogue, permissions and roles stay: this program would remove
 * rows that the newer processes need. Begins again, for as long as it waits for a database, when that goes away or when
 * another process holds the rows longer than a statement waits.
 */
export async function prepareDatabase(resources: Prepares, options: ResourcesOptions): Promise<Prepared> {
  const { clock, logger, stop, config } = options
  const wait = { limitMs: config.databaseWaitSeconds * 1000, clock, logger, stop }
  await waitForDatabase(resources.connectionString, wait)
  const migrations: string[] = []
  const ahead = await runUntilFree(wait, () => prepareOnce(resources, options, migrations))
  return { migrations, ahead: ahead ?? [] }
}

/** Adds the migrations that ran to `migrations`. Returns those of a newer release that ran before. */
async function prepareOnce(resources: Prepares, options: ResourcesOptions, migrations: string[]): Promise<string[]> {
  const { clock, time, random, logger, stop, config } = options
  const now = new Date(clock.now())
  const { ran, ahead } = await migrateSchema(resources.connectionString, {
    ...{ now, stop },
    onWait: () => logger.warn('waiting for another process that migrates: see docs/operations.md, waiting migrations'),
  })
  migrations.push(...ran)
  if (time && !stop?.aborted) await alignClock(resources.database.db, time)
  if (ahead.length > 0)
    logger.warn(
      { migrations: ahead },
      'the schema is that of a newer release: see docs/operations.md, schema of a newer release',
    )
  if (ahead.length > 0 || stop?.aborted) return ahead
  // Loaded on demand: it imports every route, which a refused migration does not need.
  const { writeDeclaredRows } = await import('../feature/declared-rows.ts')
  if (config.eventLog) await openEventLog(resources.database.db)
  await writeDeclaredRows(resources.database.db, { ids: buildIdMaker(clock, random), now: new Date(clock.now()) })
  return ahead
}
