import type { CommandRecorder } from '../app/command-record.ts'
import { type Config, readConfig } from '../app/config.ts'
import type { Prepared } from '../app/prepare.ts'
import type { Resources } from '../app/resources.ts'
import { systemClock } from '../clock.ts'
import { adoptDatabaseClock } from '../database-clock.ts'
import { buildIdMaker } from '../id.ts'
import { alignClock } from '../postgres/database-time.store.ts'
import { systemRandom } from '../random.ts'

/** Runs `work` on an open database and closes it. With `prepare`, migrates the database first. */
export async function withGround(
  options: { prepare: boolean },
  work: (resources: Resources, prepared: Prepared) => Promise<void>,
): Promise<void> {
  const config = readConfig()
  // Loaded on demand: loading takes most of the time of a start.
  const [{ buildLogger }, { openResources }, { prepareDatabase }] = await Promise.all([
    import('../app/logger.ts'),
    import('../app/resources.ts'),
    import('../app/prepare.ts'),
  ])
  const logger = buildLogger({ level: 'warn', isTerminal: process.stderr.isTTY === true })
  // What a command writes is dated, and judged, by the clock of the database.
  const { time, restore } = adoptDatabaseClock()
  const world = { config, clock: time, time, random: systemRandom, logger }
  const resources = await openResources(world)
  try {
    if (!options.prepare) await alignClock(resources.database.db, time)
    const prepared = options.prepare ? await prepareDatabase(resources, world) : { migrations: [], ahead: [] }
    await work(resources, prepared)
  } finally {
    await resources.close()
    restore()
  }
}

/** Builds what records the change of a command in its transaction, with the user of the system as the actor. */
export async function buildRecorder({ enableApiEventQueue }: Config): Promise<CommandRecorder> {
  const { buildCommandRecorder, findSystemUser } = await import('../app/command-record.ts')
  const deps = { ids: buildIdMaker(systemClock, systemRandom), enableApiEventQueue }
  return buildCommandRecorder(deps, { kind: 'command line', systemUser: findSystemUser() })
}
