import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { postgresUrl } from '../app/config/config-parsers.ts'
import { FatalError } from '../app/log/fatal.ts'
import type { Resources } from '../app/prepare/resources.ts'
import { readMonotonicMs, systemClock } from '../base/clock.ts'
import { buildIdMaker } from '../base/id.ts'
import { buildKeyring } from '../base/keyring.ts'
import { systemRandom } from '../base/random.ts'
import type { AddCellDeps } from '../carriage/cell/add-cell.ts'
import { CELL_NAME } from '../postgres/cell/cell-name.ts'
import { recordCommandAudit, withFixture } from './database/resources.ts'
import { print, printJson } from './print/print.ts'

interface AddOptions {
  urlFile?: string
  homeUrlFile?: string
  copyAgain: boolean
}

/** Adds `signalbox cell add | status | drain | remove | acknowledge` (docs/operations/cells.md). */
export function addCellCommands(program: Command): void {
  const cell = program.command('cell').description('databases beside home that hold the webhooks of some accounts')
  cell
    .command('add')
    .argument('<name>', 'its name, such as c1', parseName)
    .description('make an empty database a cell; run again after a failure')
    .requiredOption('--url-file <path>', 'a file with its connection string: postgres://user:password@host:5432/name')
    .option('--home-url-file <path>', 'a file with the connection string that its server reaches home by')
    .option('--copy-again', 'copy the reference rows again: after it was restored from a backup', false)
    .action((name: string, options: AddOptions) =>
      withCells(async (deps, { config, connectionString }) => {
        if (!config.eventLog)
          throw new FatalError('EVENT_LOG_URL is not set: cells get the events of home by the event log.')
        const { addCell } = await import('../carriage/cell/add-cell.ts')
        const url = readUrlFile(options.urlFile as string)
        const source = options.homeUrlFile === undefined ? connectionString : readUrlFile(options.homeUrlFile)
        await addCell(deps, { name, url, source, copiesAgain: options.copyAgain })
        print(`The cell ${name} is active. Processes use it within 5 seconds; its accounts are moved there one by one.`)
      }),
    )
  cell
    .command('status')
    .description('show cells, their accounts, and what waits for them; exit 1 when there is something to do')
    .action(() =>
      withCells(async (deps, { config }) => {
        const { readCellStatus } = await import('../carriage/cell/cell-status.ts')
        const status = await readCellStatus(deps, { hasLog: config.eventLog !== undefined })
        printJson(status)
        if (status.remedies.length > 0) process.exitCode = 1
      }),
    )
  cell
    .command('drain')
    .argument('<name>', 'the name of a cell', parseName)
    .description('let no more account move to a cell')
    .action((name: string) =>
      withCells(async (deps) => {
        const { drainCell } = await import('../carriage/cell/remove-cell.ts')
        await drainCell(deps, name)
        print(`No account moves to the cell ${name} any more. Move its accounts away: see signalbox cell status.`)
      }),
    )
  cell
    .command('remove')
    .argument('<name>', 'the name of a cell without accounts', parseName)
    .description('remove a cell; what is in its database stays there')
    .action((name: string) =>
      withCells(async (deps) => {
        const { dropCell } = await import('../carriage/cell/remove-cell.ts')
        const { isLeft } = await dropCell(deps, name)
        print(
          isLeft
            ? `The cell ${name} is removed.`
            : `The cell ${name} is removed. Its database was away: drop it, or its subscription.`,
        )
      }),
    )
  cell
    .command('acknowledge')
    .argument('<name>', 'the name of a cell, or home', parseName)
    .description('end the alarm of a fault of the event log, when its events are published again')
    .action((name: string) =>
      withCells(async (deps) => {
        const { acknowledgeFault } = await import('../carriage/cell/cell-status.ts')
        await acknowledgeFault(deps, name)
        print(`The fault of ${name} is acknowledged.`)
      }),
    )
}

/** Runs on home with what changes cells; a `CellError` ends the command with its sentence. */
async function withCells(work: (deps: AddCellDeps, resources: Resources) => Promise<void>): Promise<void> {
  await withFixture({ prepare: false }, async (resources) => {
    const [{ CellError }, { openDatabase }, { migrate }] = await Promise.all([
      import('../carriage/cell/cell-error.ts'),
      import('../postgres/statement/database.ts'),
      import('../postgres/migration/migrate.ts'),
    ])
    const deps: AddCellDeps = {
      home: resources.database.db,
      keyring: buildKeyring(resources.secrets.secretKey, systemRandom),
      open: (connectionString) =>
        openDatabase({ connectionString, size: 2, applicationName: 'signalbox cell', onError: () => {} }),
      migrate,
      newId: () => buildIdMaker(systemClock, systemRandom).next(),
      now: () => new Date(systemClock.now()),
      monotonicMs: readMonotonicMs,
      rest: systemClock.sleep,
      record: (tx, detail) => recordCommandAudit(tx, { action: String(detail.command).replace(' ', '.'), detail }),
    }
    await work(deps, resources).catch((error: unknown) => {
      throw error instanceof CellError ? new FatalError(error.message) : error
    })
  })
}

function parseName(value: string): string {
  if (!CELL_NAME.test(value))
    throw new InvalidArgumentError('It must be a small letter, then small letters, digits and hyphens: at most 31.')
  return value
}

/** The connection string in a file: an argument is seen by every user of the machine. Never in a message. */
function readUrlFile(path: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new FatalError(`The file ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
  try {
    return postgresUrl(text)
  } catch {
    throw new FatalError(
      `The file ${path} does not have a connection string like postgres://user:password@host:5432/name.`,
    )
  }
}
