import {
  type CellRecord,
  cellContextOf,
  countAccountsByCell,
  findCell,
  listCells,
} from '../../postgres/cell/cell.store.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findIntakeFacts, forgetFault, type IntakeFacts } from '../intake/intake.store.ts'
import { listMoves, type MoveRecord } from '../move/move.store.ts'
import { canGoBack, type MoveStep, type Place } from '../move/move-plan.ts'
import { type EventLogFacts, readEventLogFacts } from '../relay/log-facts.ts'
import type { AddCellDeps } from './add-cell.ts'
import { CellError } from './cell-error.ts'
import { type ReferenceFacts, readReferenceFacts, readSourceFacts, type SourceFacts } from './reference.store.ts'

/** Age of an intake's last look at which it counts as stopped; it renews its lease each 5 s. */
const STOPPED_MS = 60_000

/** Bytes of home's log of changes that a cell may not have confirmed. */
const LAG_BYTES = 256 * 1024 * 1024

/** Known state of one database. */
export interface DatabaseStatus {
  name: string
  state: CellRecord['state'] | 'home'
  accounts: number | null
  is_reachable: boolean
  /** Of a cell: the rows that it has of home. */
  reference: { is_running: boolean; copying: number; lag_bytes: number | null } | null
  /** Events that wait in its outbox. */
  outbox: Pick<EventLogFacts, 'waiting' | 'oldest_waiting_s' | 'has_relay'> | null
  intake: {
    sequence: number
    has_runner: boolean
    read_since: string | null
    fault: string | null
    missing_since: string | null
  } | null
}

/** A move of an account that has not ended. */
export interface MoveStatus {
  account: string
  from: string
  to: string
  step: MoveStep
  is_running: boolean
  since: string
}

/** The cells with what is to be done. */
export interface CellStatus {
  databases: DatabaseStatus[]
  /** At most 1,000. */
  moves: MoveStatus[]
  interrupted: number
  /** Sentences; empty while nothing is to be done. */
  remedies: string[]
}

/** Reads home and every cell, all at once, by connections of its own: one that is away is shown as such. */
export async function readCellStatus(
  { home, keyring, open, now }: Pick<AddCellDeps, 'home' | 'keyring' | 'open' | 'now'>,
  { hasLog }: { hasLog: boolean },
): Promise<CellStatus> {
  return readStatusOf(await listCells(home), { home, use: buildCellUse({ keyring, open }), now: now(), hasLog })
}

/** Uses each cell by a connection of its own. */
export const buildCellUse =
  ({ keyring, open }: Pick<AddCellDeps, 'keyring' | 'open'>): CellUse =>
  async ({ name, databaseUrlEncrypted }, use) => {
    const pool = open(keyring.open(databaseUrlEncrypted, cellContextOf(name)))
    try {
      return await use(pool.db)
    } finally {
      await pool.close()
    }
  }

/** Does something in the database of a cell. Rejects when it is away. */
export type CellUse = <Result>(
  record: Pick<CellRecord, 'name' | 'databaseUrlEncrypted'>,
  use: (db: Database) => Promise<Result>,
) => Promise<Result>

/** Reads home and every cell by the connections of a process; undefined without cells. */
export async function findStatus(given: StatusDeps): Promise<CellStatus | undefined> {
  const records = await listCells(given.home)
  return records.length === 0 ? undefined : readStatusOf(records, given)
}

interface StatusDeps {
  home: Database
  use: CellUse
  now: Date
  hasLog: boolean
  /** How long a cell may be joining. Default: it may not. */
  joiningMs?: number
}

/** Reads home and these cells, all at once. */
async function readStatusOf(records: readonly CellRecord[], given: StatusDeps): Promise<CellStatus> {
  const { home, use, now, hasLog, joiningMs = 0 } = given
  const [accounts, moves] = [await countAccountsByCell(home), await listMoves(home)]
  const ofHome = await readOne(home, now)
  const cells = await Promise.all(
    records.map(async (record) => {
      const { name, state } = record
      const source = await readSourceFacts(home, name)
      const found = await use(record, async (db) => ({
        ...(await readOne(db, now)),
        reference: await readReferenceFacts(db),
      })).catch(() => undefined)
      const isJoining = state === 'joining' && now.getTime() - record.createdAt.getTime() >= joiningMs
      const status = describe({ name, state, accounts: accounts.get(name) ?? 0, found, source })
      return { isJoining, status, source }
    }),
  )
  const databases = [
    describe({ name: 'home', state: 'home', accounts: null, found: ofHome, source: undefined }),
    ...cells.map(({ status }) => status),
  ]
  const takesIn = records.length > 0
  const remedies = databases.flatMap((status, index) => findRemedies(status, { cell: cells[index - 1], takesIn }))
  const interrupted = moves.filter(({ isInterrupted }) => isInterrupted)
  remedies.push(...interrupted.map(findMoveRemedy))
  if (!hasLog && records.length > 0)
    remedies.push('EVENT_LOG_URL is not set here: set it in every process, or cells get nothing.')
  return { databases, moves: moves.map(describeMove), interrupted: interrupted.length, remedies }
}

interface Found {
  outbox: EventLogFacts
  intake: IntakeFacts | undefined
  reference: ReferenceFacts | undefined
}

async function readOne(db: Database, now: Date): Promise<Found> {
  return { outbox: await readEventLogFacts(db, now), intake: await findIntakeFacts(db), reference: undefined }
}

const nameOf = (place: Place) => place ?? 'home'

function describeMove({ account, source, target, step, isLeased, createdAt }: MoveRecord): MoveStatus {
  const places = { from: nameOf(source), to: nameOf(target) }
  return { account, ...places, step, is_running: isLeased, since: createdAt.toISOString() }
}

function findMoveRemedy({ account, source, target, step }: MoveRecord): string {
  const back = canGoBack(step) ? ', with --back to go back' : ''
  return `The move of the account ${account} from ${nameOf(source)} to ${nameOf(target)} was interrupted (${step}), and its changes are refused: run signalbox account move ${account}${back}.`
}

function describe(given: {
  name: string
  state: DatabaseStatus['state']
  accounts: number | null
  found: Found | undefined
  source: SourceFacts | undefined
}): DatabaseStatus {
  const { name, state, accounts, found, source } = given
  const { outbox, intake, reference } = found ?? {}
  return {
    ...{ name, state, accounts, is_reachable: found !== undefined },
    reference: reference
      ? { is_running: reference.isRunning, copying: reference.copying, lag_bytes: source?.lagBytes ?? null }
      : null,
    outbox: outbox
      ? { waiting: outbox.waiting, oldest_waiting_s: outbox.oldest_waiting_s, has_relay: outbox.has_relay }
      : null,
    intake: intake
      ? {
          sequence: intake.sequence,
          has_runner: intake.runner !== null,
          read_since: intake.readSince?.toISOString() ?? null,
          fault: intake.fault,
          missing_since: intake.missingSince?.toISOString() ?? null,
        }
      : null,
  }
}

/** Remedies for one database. `takesIn`: there are cells, whose events home takes in, and they those of home. Pure. */
function findRemedies(
  { name, is_reachable: isReachable, reference, outbox, intake }: DatabaseStatus,
  { cell, takesIn }: { cell: { source: SourceFacts; isJoining: boolean } | undefined; takesIn: boolean },
): string[] {
  if (!isReachable) return [`${name} cannot be reached: see docs/operations/cells.md, a cell that is away.`]
  const remedies: string[] = []
  if (cell?.isJoining) remedies.push(`${name} is joining: run signalbox cell add ${name} again.`)
  if (cell?.source.isLost)
    remedies.push(`${name} has lost changes of home, as after a failover: run signalbox cell add ${name} again.`)
  else if (reference && !reference.is_running)
    remedies.push(`${name} gets no reference rows: look at the log of its server, and of home's.`)
  else if ((reference?.lag_bytes ?? 0) > LAG_BYTES)
    remedies.push(`${name} is far behind the reference rows of home: look at the log of its server.`)
  if (outbox && outbox.oldest_waiting_s * 1_000 >= STOPPED_MS)
    remedies.push(`Events of ${name} wait for the event log: see docs/operations/event-log.md, backlog.`)
  if (takesIn && intake && !intake.has_runner)
    remedies.push(`No process takes in events for ${name}: look at the log lines of the role dispatcher.`)
  if (intake?.missing_since)
    remedies.push(
      `${name} missed events that the log had removed: run signalbox log republish --since ${intake.missing_since}, then signalbox cell acknowledge ${name}.`,
    )
  return remedies
}

/** The cell with this name. Throws a `CellError`. */
export async function loadCell(home: Database, name: string): Promise<CellRecord> {
  const cell = await findCell(home, { name })
  if (!cell) throw buildUnknownCell(name)
  return cell
}

/** The error of a name that no cell has. */
export const buildUnknownCell = (name: string) =>
  new CellError('unknown_cell', `There is no cell ${name}: see signalbox cell status.`)

/** Ends the alarm of a fault in the intake of a database. Throws a `CellError`. */
export async function acknowledgeFault(
  { home, keyring, open, record }: Pick<AddCellDeps, 'home' | 'keyring' | 'open' | 'record'>,
  name: string,
): Promise<void> {
  if (name === 'home') await forgetFault(home)
  else await buildCellUse({ keyring, open })(await loadCell(home, name), forgetFault)
  await record(home, { command: 'cell acknowledge', cell: name })
}
