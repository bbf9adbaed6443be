import { type Command, InvalidArgumentError } from 'commander'
import { readEnvironment } from '../../app/config/config.ts'
import { FatalError } from '../../app/log/fatal.ts'
import { systemClock } from '../../base/clock.ts'
import { parseNumber, readInstant } from '../option/option.ts'
import { exportLedger, type UseArchive } from './export-ledger.ts'
import { type ReadOptions, readLedger } from './read-ledger.ts'
import { removeFromLedger } from './remove-ledger.ts'

const FOUND_LIMIT = 1_000_000

const PLACE = 'a folder, or s3://bucket/prefix'

/** Adds `signalbox ledger export | remove | read` (docs/operations/ledger.md). */
export function addLedgerCommands(program: Command): void {
  const ledger = program.command('ledger').description('an archive of the ledger in Parquet files')
  ledger
    .command('export')
    .description(
      'write ended deliveries and events to Parquet files, without those that are there; run again at any time',
    )
    .option(
      '--before <date>',
      'those created before this day of UTC, such as 2026-09-01 (default: every day that ended an hour ago)',
      parseDate,
    )
    .requiredOption('--to <place>', PLACE)
    .action(({ before, to }: { before?: Date; to: string }) =>
      withArchive({ place: to, isWritten: true }, (use) => exportLedger(use, before)),
    )
  ledger
    .command('remove')
    .description('remove files of an account, or of the days before one; they are not exported again')
    .requiredOption('--from <place>', PLACE)
    .option('--account <id>', 'those of one account; none: those of no account', parseAccount)
    .option('--before <date>', 'those of the days of UTC before this one, such as 2026-09-01', parseDate)
    .action(({ from, ...removal }: { from: string; account?: string | null; before?: Date }) =>
      withArchive({ place: from, isWritten: true }, (use) => removeFromLedger(use, removal)),
    )
  ledger
    .command('read')
    .description('print archived deliveries and events, one a line; needs no database')
    .requiredOption('--from <place>', PLACE)
    .option('--account <id>', 'those of one account; none: those of no account', parseAccount)
    .option('--event <id>', 'one event, and its deliveries', parseId)
    .option('--webhook <id>', 'the deliveries to one webhook', parseId)
    .option('--delivery <id>', 'one delivery', parseId)
    .option('--since <date>', 'those created at this instant or day of UTC or later', parseInstant)
    .option('--until <date>', 'those created before this instant or day of UTC', parseInstant)
    .option(
      '--limit <number>',
      `at most so many, up to ${FOUND_LIMIT}; more set the exit code 1`,
      parseNumber(1, FOUND_LIMIT),
      1_000,
    )
    .option('--json', 'whole rows, as JSON', false)
    .action((options: ReadOptions & { from: string }) =>
      withArchive({ place: options.from, isWritten: false }, (use) => use((storage) => readLedger(storage, options))),
    )
}

/** Runs with what opens a place and closes it again; an `ArchiveError` ends the command with its sentence. */
async function withArchive(
  { place, isWritten }: { place: string; isWritten: boolean },
  work: (using: UseArchive) => Promise<void>,
): Promise<void> {
  const [{ openStorage }, { ArchiveError }] = await Promise.all([
    import('../../webhook/archive/storage/open-storage.ts'),
    import('../../webhook/archive/storage/archive-error.ts'),
  ])
  const rest = (ms: number) => systemClock.sleep(ms, new AbortController().signal)
  const now = () => new Date(systemClock.now())
  try {
    await work(async (use) => {
      const storage = await openStorage(place, { environment: readEnvironment(), isWritten, now, rest })
      try {
        await use(storage)
      } finally {
        await storage.close()
      }
    })
  } catch (error) {
    throw error instanceof ArchiveError ? new FatalError(error.message) : error
  }
}

function parseDate(value: string): Date {
  const date = /^\d{4}-\d\d-\d\d$/.test(value) ? new Date(`${value}T00:00:00Z`) : undefined
  if (!date || Number.isNaN(date.getTime()) || !date.toISOString().startsWith(value))
    throw new InvalidArgumentError('It must be a day of UTC like 2026-09-01.')
  return date
}

function parseInstant(value: string): Date {
  if (/^\d{4}-\d\d-\d\d$/.test(value)) return parseDate(value)
  const instant = readInstant(value)
  if (!instant)
    throw new InvalidArgumentError('It must be a day like 2026-09-01, or an instant of UTC like 2026-09-11T10:00:00Z.')
  return instant
}

function parseId(value: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value))
    throw new InvalidArgumentError('It must be a document_id, in small letters.')
  return value
}

const parseAccount = (value: string): string | null => (value === 'none' ? null : parseId(value))
