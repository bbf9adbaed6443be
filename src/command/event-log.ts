import { type Command, InvalidArgumentError } from 'commander'
import type { Config } from '../app/config/config.ts'
import { FatalError } from '../app/log/fatal.ts'
import type { Resources } from '../app/prepare/resources.ts'
import { systemClock } from '../base/clock.ts'
import type { EventLog, LogPosition } from '../carriage/log/log.ts'
import type { EventLogSettings } from '../carriage/settings.ts'
import type { Database } from '../postgres/statement/database.ts'
import { recordCommandAudit, withFixture } from './database/resources.ts'
import { parseNumber, readInstant } from './option/option.ts'
import { print, printJson } from './print/print.ts'

const READ_BATCH = 500
const READ_LIMIT = 1_000_000
const OFF = 'The event log is off: no process was started with EVENT_LOG_URL.'

/** Adds `signalbox log status | read | republish | off` (docs/operations/event-log.md). */
export function addEventLogCommands(program: Command): void {
  const log = program.command('log').description('the event log in NATS')
  log
    .command('status')
    .description('show what waits for the log, and what the log holds; exit 1 when there is something to do')
    .action(() => withFixture({ prepare: false }, ({ database, config }) => showStatus(database.db, config)))
  log
    .command('read')
    .description('print the envelopes in the log, one a line')
    .requiredOption('--since <instant>', 'from the events stored at this time on', parseInstant)
    .option('--account <id>', 'those of one account; none: those that no account owns', parseToken)
    .option('--type <event type>', 'those of one event type', parseType)
    .option('--limit <number>', `at most so many, up to ${READ_LIMIT}`, parseNumber(1, READ_LIMIT), 100)
    .action((options: ReadOptions) => withFixture({ prepare: false }, ({ config }) => readLog(config, options)))
  log
    .command('republish')
    .description('append all events recorded after an instant again, with their ids; consumers drop those they have')
    .requiredOption('--since <instant>', 'the instant', parseInstant)
    .action(({ since }: { since: Date }) => withFixture({ prepare: false }, (resources) => republish(resources, since)))
  log
    .command('off')
    .description('stop recording events for the log, and drop those that wait')
    .action(() => withFixture({ prepare: false }, ({ database, config }) => turnOff(database.db, config)))
}

interface ReadOptions {
  since: Date
  account?: string
  type?: string
  limit: number
}

async function showStatus(db: Database, { eventLog }: Config): Promise<void> {
  const { readOutboxFacts } = await import('../carriage/relay/outbox-facts.store.ts')
  const { decideEventLogFacts } = await import('../carriage/relay/log-facts.ts')
  const known = await readOutboxFacts(db, { limit: 1_000_000 })
  if (!known.isOpen && !eventLog) throw new FatalError(OFF)
  const now = new Date(systemClock.now())
  const { remedy, ...facts } = decideEventLogFacts(known, now)
  const confirmed = { incarnation: known.incarnation, sequence: known.sequence, at: known.appendedAt }
  const log = eventLog && (await withLog(eventLog, readLogState).catch(describeFailure))
  printJson({ ...facts, confirmed, log: log ?? 'EVENT_LOG_URL is not set here', remedy })
  if (remedy !== null || (log && 'error' in log)) process.exitCode = 1
}

async function readLogState(open: EventLog) {
  const { firstSequence, ...state } = await open.readState()
  return { ...state, first_sequence: firstSequence }
}

const describeFailure = (error: Error & { code?: string }) => ({
  error: error.code ?? 'failed',
  message: error.message,
})

async function withLog<Result>(settings: EventLogSettings, use: (log: EventLog) => Promise<Result>): Promise<Result> {
  const { openNatsLog } = await import('../carriage/nats/nats-log.ts')
  const log = await openNatsLog(settings, { name: 'signalbox log', isReader: true })
  try {
    return await use(log)
  } finally {
    await log.close()
  }
}

async function readLog({ eventLog }: Config, { since, account = '*', type, limit }: ReadOptions): Promise<void> {
  if (!eventLog) throw new FatalError('EVENT_LOG_URL is not set: it names the servers of the log.')
  const { SUBJECT_PREFIX } = await import('../carriage/log/event-message.ts')
  const subject = `${SUBJECT_PREFIX}.${account}.${type ?? '>'}`
  await withLog(eventLog, async (log) => {
    const { incarnation } = await log.readState()
    let from: LogPosition | Date = since
    for (let left = limit; left > 0; ) {
      const entries = await log.read({ from, subject, limit: Math.min(left, READ_BATCH) })
      for (const { body } of entries) print(body)
      const last = entries.at(-1)
      if (!last) return
      left -= entries.length
      from = { incarnation, sequence: last.sequence }
    }
  })
}

async function republish(resources: Resources, since: Date): Promise<void> {
  const { beginRepublication } = await import('../carriage/relay/outbox.store.ts')
  const { onEachDatabase } = await import('./database/each-database.ts')
  const given = { after: since, now: new Date(systemClock.now()) }
  const cells = await onEachDatabase(resources, async (db, cell) => {
    // The audit log of the service is that of home.
    if (cell !== null) return void (await beginRepublication(db, given))
    await inAudited(db, { command: 'log republish', since: since.toISOString() }, async (tx) => {
      if (!(await beginRepublication(tx, given))) throw new FatalError(OFF)
    })
  })
  print(`Events recorded after ${since.toISOString()} are appended again within 10 seconds: see signalbox log status.`)
  if (cells.length > 0) print(`So are those of the cells ${cells.join(', ')}.`)
}

async function turnOff(db: Database, { eventLog }: Config): Promise<void> {
  if (eventLog)
    throw new FatalError(
      'EVENT_LOG_URL is set: the next start would turn the log on. Remove it from all processes first.',
    )
  const { listCells } = await import('../postgres/cell/cell.store.ts')
  if ((await listCells(db)).length > 0)
    throw new FatalError('There are cells, which get the events of home by the log: see signalbox cell status.')
  const { closeOutbox } = await import('../carriage/relay/outbox.store.ts')
  await inAudited(db, { command: 'log off' }, closeOutbox)
  print('Events are not recorded for the log any more. The stream in NATS is as it was.')
}

async function inAudited(
  db: Database,
  detail: Record<string, unknown>,
  change: (tx: Database) => Promise<unknown>,
): Promise<void> {
  const { inTransaction } = await import('../postgres/statement/database.ts')
  await inTransaction(db, async (tx) => {
    await change(tx)
    await recordCommandAudit(tx, { action: `event-${String(detail.command).replace(' ', '.')}`, detail })
  })
}

function parseInstant(value: string): Date {
  const instant = readInstant(value)
  if (!instant) throw new InvalidArgumentError('It must be an instant of UTC like 2026-09-11T10:00:00Z.')
  return instant
}

function parseToken(value: string): string {
  if (!/^[a-z0-9-]{1,64}$/.test(value)) throw new InvalidArgumentError('It must be the id of an account, or none.')
  return value
}

function parseType(value: string): string {
  if (!/^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(value))
    throw new InvalidArgumentError('It must be an event type like contract.update.')
  return value
}
