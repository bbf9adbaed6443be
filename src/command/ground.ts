import { systemClock } from '../clock.ts'
import { readConfig } from '../config.ts'
import { buildLogger } from '../logger.ts'
import { type Ground, openGround, prepareDatabase } from '../prepare.ts'
import { systemRandom } from '../random.ts'

/** Runs `work` on an open database and closes it again. With `prepare`, the database is brought up to date first. */
export async function withGround(
  options: { prepare: boolean },
  work: (ground: Ground, prepared: { migrations: string[] }) => Promise<void>,
): Promise<void> {
  const config = readConfig()
  const logger = buildLogger({ level: 'warn', isTerminal: process.stderr.isTTY === true })
  const world = { config, clock: systemClock, random: systemRandom, logger }
  const ground = await openGround(world)
  try {
    const prepared = options.prepare ? await prepareDatabase(ground, world) : { migrations: [] }
    await work(ground, prepared)
  } finally {
    await ground.close()
  }
}

/** Prints one line of a command's answer. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
