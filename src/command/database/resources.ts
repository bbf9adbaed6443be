import { type Config, readConfig } from '../../app/config/config.ts'
import type { CommandRecorder } from '../../app/prepare/command-record.ts'
import type { Prepared } from '../../app/prepare/prepare.ts'
import type { Resources } from '../../app/prepare/resources.ts'
import { systemClock } from '../../base/clock.ts'
import { adoptDatabaseClock } from '../../base/database-clock.ts'
import { type AccountId, buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import type { Database } from '../../postgres/statement/database.ts'

/** Runs `work` on an open database, also beside a running service. `prepare` migrates first. */
export async function withFixture(
  options: { prepare: boolean },
  work: (resources: Resources, prepared: Prepared) => Promise<void>,
): Promise<void> {
  const config = readConfig()
  // Loaded on demand: loading takes most of the time of a start.
  const [{ buildLogger }, { openResources }, { prepareDatabase }, { alignClock }] = await Promise.all([
    import('../../app/log/logger.ts'),
    import('../../app/prepare/resources.ts'),
    import('../../app/prepare/prepare.ts'),
    import('../../postgres/database-time.store.ts'),
  ])
  const logger = buildLogger({ level: 'warn', isTerminal: process.stderr.isTTY === true })
  // Writes of a command are dated and checked by the clock of the database.
  const { time, restore } = adoptDatabaseClock()
  const fixture = { config, clock: time, time, random: systemRandom, logger }
  try {
    const resources = await openResources({ ...fixture, joinsRunning: true })
    try {
      if (!options.prepare) await alignClock(resources.database.db, time)
      const prepared = options.prepare ? await prepareDatabase(resources, fixture) : { migrations: [], ahead: [] }
      await work(resources, prepared)
    } finally {
      await resources.close()
    }
  } finally {
    restore()
  }
}

/** Builds the recording of a command's change in its transaction, with the user of the system as the actor. */
export async function buildRecorder({ enableApiEventQueue }: Config): Promise<CommandRecorder> {
  const { buildCommandRecorder, findSystemUser } = await import('../../app/prepare/command-record.ts')
  const deps = { ids: buildIdMaker(systemClock, systemRandom), enableApiEventQueue }
  return buildCommandRecorder(deps, { kind: 'command line', systemUser: findSystemUser() })
}

/** Writes the audit entry of a command's change of the installation, with the user of the system as the actor. */
export async function recordCommandAudit(
  tx: Database,
  entry: { action: string; account?: AccountId; target?: string; detail: Record<string, unknown> },
): Promise<void> {
  const { recordAudit } = await import('../../event/recording/audit.ts')
  const { findSystemUser } = await import('../../app/prepare/command-record.ts')
  const deps = { ids: buildIdMaker(systemClock, systemRandom), now: new Date(systemClock.now()) }
  const detail = { ...entry.detail, actor: 'command line', system_user: findSystemUser() }
  await recordAudit(tx, deps, { ...entry, outcome: 'success', userId: null, detail })
}
