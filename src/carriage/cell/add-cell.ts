import type { Clock } from '../../base/clock.ts'
import type { Keyring } from '../../base/keyring.ts'
import {
  cellContextOf,
  changeCellState,
  type DatabaseIdentity,
  ensureHome,
  findCell,
  findIdentity,
  writeCell,
} from '../../postgres/cell/cell.store.ts'
import { CELL_NAME } from '../../postgres/cell/cell-name.ts'
import { type Database, type DatabasePool, inTransaction } from '../../postgres/statement/database.ts'
import { openOutbox } from '../relay/outbox.store.ts'
import { CellError } from './cell-error.ts'
import { closeSource } from './close-source.ts'
import {
  ANOTHER_IDENTITY,
  becomeCell,
  beginIntake,
  hasRows,
  joinReference,
  leaveReference,
  openReferenceSource,
  readCandidateFacts,
  readHomeFacts,
  readReferenceFacts,
  readSourceFacts,
} from './reference.store.ts'

/** PostgreSQL that can be a cell: its user need not be a superuser from 16 on. */
const OLDEST_VERSION = 150_000

/** Wait for the first copy of the reference rows, and pause between two looks. */
const COPY_LIMIT_MS = 600_000
const COPY_LOOK_MS = 200

export interface AddCellDeps {
  home: Database
  keyring: Keyring
  open: (url: string) => DatabasePool
  migrate: (url: string) => Promise<unknown>
  newId: () => string
  now: () => Date
  /** Monotonic milliseconds, and a pause in real time: they bound the wait for a server. */
  monotonicMs: () => number
  rest: Clock['sleep']
  /** Writes the audit entry, in the transaction of the change. */
  record: (tx: Database, detail: Record<string, unknown>) => Promise<void>
}

export interface AddCellInput {
  name: string
  /** The connection string of the cell, for the processes of the service. */
  url: string
  /** The connection string of home, for the server of the cell. */
  source: string
  /** Copies the reference rows again: after the cell was restored from a backup. */
  copiesAgain?: boolean
}

/**
 * Makes a database a cell: checks, migrates and fills it. A command that was killed is run again. Throws a `CellError`.
 */
export async function addCell(deps: AddCellDeps, input: AddCellInput): Promise<void> {
  const { home, now } = deps
  const { name, url } = input
  if (!CELL_NAME.test(name))
    throw new CellError(
      'unknown_cell',
      'A cell is named by a letter, then letters, digits and hyphens: at most 31, small.',
    )
  const identity = await identifyHome(deps)
  const cell = deps.open(url)
  try {
    const isThisCell = await checkCandidate(cell.db, { home: identity.home, name })
    const known = await findCell(home, { name })
    if (known && known.state !== 'joining' && !isThisCell)
      throw new CellError('name_taken', `There is a cell ${name}, in another database. Choose another name.`)
    await writeCell(home, { name, url: deps.keyring.seal(url, cellContextOf(name)), now: now() })
    await deps.migrate(url)
    await becomeCell(cell.db, { home: identity.home, name }).catch((error: { code?: string }) => {
      if (error.code !== ANOTHER_IDENTITY) throw error
      throw new CellError('cell_of_another_service', 'Another command made this database a cell of something else.')
    })
    await openOutbox(cell.db)
    for (const db of [home, cell.db]) await beginIntake(db, now())
    // Without its slot, a subscription has lost changes: all rows are copied again.
    if (input.copiesAgain) await leaveReference(cell.db)
    if (input.copiesAgain) await closeSource(home, name)
    if ((await readSourceFacts(home, name)).isLost) await leaveReference(cell.db)
    await openSource(deps, name)
    await subscribe(cell.db, input)
    await awaitCopy(deps, cell.db)
    await inTransaction(home, async (tx) => {
      const isNew = await changeCellState(tx, { name, state: 'active', from: ['joining'], now: now() })
      if (isNew) await deps.record(tx, { command: 'cell add', cell: name })
    })
  } finally {
    await cell.close()
  }
}

async function identifyHome({ home, newId }: AddCellDeps): Promise<DatabaseIdentity> {
  const facts = await readHomeFacts(home)
  if (!facts.hasLog)
    throw new CellError(
      'log_off',
      'The event log is off, and cells get the events of home by it. Start a process with EVENT_LOG_URL first.',
    )
  if (facts.walLevel !== 'logical')
    throw new CellError(
      'home_wal_level',
      `The server of DATABASE_URL has wal_level = ${facts.walLevel}. Set wal_level = logical there, and start it again.`,
    )
  if (facts.walSenders === 0)
    throw new CellError(
      'home_slots',
      'The server of DATABASE_URL has max_wal_senders = 0, so no cell reads its changes. Raise it there, and start it again.',
    )
  if (!facts.mayReplicate || !facts.mayPublish)
    throw new CellError(
      'home_rights',
      'The user of DATABASE_URL may not replicate. Run there: alter role <user> replication; grant create on database <name> to <user>.',
    )
  const identity = await ensureHome(home, newId())
  if (identity.cell !== null)
    throw new CellError('home_is_cell', `The database of DATABASE_URL is the cell ${identity.cell}. Set it to home.`)
  return identity
}

/** Refuses a database that is not empty, is home, or belongs to something else. Returns whether it already is this cell. */
async function checkCandidate(db: Database, wanted: { home: string; name: string }): Promise<boolean> {
  const facts = await readCandidateFacts(db).catch((error: Error & { code?: string }) => {
    throw new CellError('cell_unreachable', `The database of the cell cannot be used: ${error.message}.`)
  })
  if (facts.version < OLDEST_VERSION) throw new CellError('cell_version', 'A cell needs PostgreSQL 15 or newer.')
  if (!facts.mayCreate || !facts.maySubscribe)
    throw new CellError(
      'cell_rights',
      'The user of the cell may not subscribe. Run there: grant pg_create_subscription to <user>; grant create on database <name> to <user>. Before PostgreSQL 16 it must be a superuser.',
    )
  const identity = facts.hasIdentity ? await findIdentity(db) : undefined
  if (identity) {
    const { home, cell } = identity
    if (home !== wanted.home)
      throw new CellError('cell_of_another_service', 'This database belongs to another service. Give an empty one.')
    if (cell === null) throw new CellError('cell_is_home', 'This database is home itself. Give an empty one.')
    if (cell !== wanted.name)
      throw new CellError('cell_of_another_name', `This database is the cell ${cell}. Use that name, or an empty one.`)
    return true
  }
  const isForeign = facts.tables > 0 && !facts.hasMigrations
  if (isForeign || (await hasRows(db, facts.present)))
    throw new CellError('cell_not_empty', 'This database has rows or tables. Give an empty one.')
  return false
}

async function openSource({ home }: AddCellDeps, name: string): Promise<void> {
  await openReferenceSource(home, name).catch((error: Error & { code?: string }) => {
    if (error.code !== OUT_OF_SLOTS) throw error
    throw new CellError(
      'home_slots',
      'The server of home has no replication slot left. Raise max_replication_slots there.',
    )
  })
}

/** SQLSTATE of PostgreSQL: configuration limit exceeded. */
const OUT_OF_SLOTS = '53400'

async function subscribe(db: Database, { source, name }: AddCellInput): Promise<void> {
  await joinReference(db, { source, cell: name }).catch((error: Error & { code?: string }) => {
    // The text may name the host; the statement, with the password, is not in it.
    throw new CellError(
      'home_unreachable_from_cell',
      'The server of the cell cannot subscribe to home. Give the connection string that it reaches home by, with a user and a password: --home-url-file.',
      { cause: new Error(error.code ?? 'no SQLSTATE') },
    )
  })
}

async function awaitCopy({ monotonicMs, rest }: AddCellDeps, db: Database): Promise<void> {
  const startedMs = monotonicMs()
  for (;;) {
    const { isSubscribed, copying } = await readReferenceFacts(db)
    if (isSubscribed && copying === 0) return
    if (monotonicMs() - startedMs >= COPY_LIMIT_MS)
      throw new CellError(
        'reference_slow',
        'The first copy of the reference rows has not ended. Look at the log of the server of the cell, and run the command again.',
      )
    await rest(COPY_LOOK_MS)
  }
}
