import { type Command, InvalidArgumentError } from 'commander'
import { FatalError } from '../../app/log/fatal.ts'
import type { Resources } from '../../app/prepare/resources.ts'
import { systemClock } from '../../base/clock.ts'
import { type AccountId, buildIdMaker, isUuid } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import type { EventLog } from '../../carriage/log/log.ts'
import type { MoveRecord } from '../../carriage/move/move.store.ts'
import type { Place } from '../../carriage/move/move-plan.ts'
import type { MoveEnd, MoveProgress } from '../../carriage/move/mover.ts'
import type { Database, DatabasePool } from '../../postgres/statement/database.ts'
import { recordCommandAudit, withFixture } from '../database/resources.ts'
import { parseNumber } from '../option/option.ts'
import { print, printJson } from '../print/print.ts'

/** How long a move waits for what is under way, before it goes back, in seconds. */
const DRAIN_SECONDS = 300
const DRAIN_SECONDS_LIMIT = 86_400

interface MoveOptions {
  back: boolean
  drain: number
}

/** Adds `signalbox account move` (docs/operations/account-move.md). */
export function addAccountMoveCommand(account: Command): void {
  account
    .command('move')
    .argument('<account>', 'the document_id of an account; status: print the moves that have not ended', parseSubject)
    .argument('[place]', 'the name of a cell, or home; without it an interrupted move goes on')
    .option('--back', 'go back: everything stays where it was', false)
    .option(
      '--drain <seconds>',
      'how long it waits for attempts under way before it goes back',
      parseNumber(1, DRAIN_SECONDS_LIMIT, ' of seconds'),
      DRAIN_SECONDS,
    )
    .description('move the webhooks and the ledger of an account to another database')
    .action((subject: string, place: string | undefined, options: MoveOptions) =>
      withFixture({ prepare: false }, async (resources) => {
        if (subject === 'status') await showMoves(resources)
        else await moveAccount(resources, { account: subject as AccountId, place, options })
      }),
    )
}

async function showMoves({ maintenanceDatabase: { db } }: Resources): Promise<void> {
  const { listMoves } = await import('../../carriage/move/move.store.ts')
  printJson((await listMoves(db)).map(describeMove))
}

function describeMove({ account, source, target, step, reason, isLeased, copied, createdAt }: MoveRecord) {
  const from = source ?? 'home'
  const to = target ?? 'home'
  const remedy = isLeased ? null : `run signalbox account move ${account}, with --back to go back`
  return { account, from, to, step, reason, rows: copied.rows ?? 0, is_running: isLeased, since: createdAt, remedy }
}

async function moveAccount(
  resources: Resources,
  given: { account: AccountId; place: string | undefined; options: MoveOptions },
): Promise<void> {
  const { account, place, options } = given
  const home = resources.maintenanceDatabase.db
  const { askBack, findMove } = await import('../../carriage/move/move.store.ts')
  const present = await findMove(home, { account })
  if (options.back && place !== undefined) throw new FatalError('Give a place, or --back.')
  if (options.back && !(await askBack(home, { account, reason: 'asked' })))
    throw new FatalError(
      present && present.step !== 'back'
        ? 'The move has gone too far to go back: let it end, and move the account again.'
        : 'There is no move of this account to go back from: see signalbox account move status.',
    )
  if (!options.back && place !== undefined) await begin(home, { account, target: readPlace(place), present, options })
  const end = await run(resources, account)
  report(end)
}

const readPlace = (place: string): Place => (place === 'home' ? null : place)

/** Begins a move, or checks that the present one has the same target. */
async function begin(
  home: Database,
  given: { account: AccountId; target: Place; present: MoveRecord | undefined; options: MoveOptions },
): Promise<void> {
  const { account, target, present, options } = given
  if (present) {
    if (present.target !== target)
      throw new FatalError(`The account is moving to ${present.target ?? 'home'}: see signalbox account move status.`)
    return
  }
  const { beginMove, findMoveAccount, lockMoveCell } = await import('../../carriage/move/move.store.ts')
  const { isKnown, cell } = await findMoveAccount(home, { account })
  if (!isKnown) throw new FatalError('There is no account with this id, or it was deleted.')
  if (cell === target) throw new FatalError(`The account is in ${target ?? 'home'} already.`)
  const { inTransaction } = await import('../../postgres/statement/database.ts')
  await inTransaction(home, async (tx) => {
    const state = target === null ? 'active' : await lockMoveCell(tx, { name: target })
    if (state !== 'active')
      throw new FatalError(
        state ? `The cell ${target} is ${state}: no account moves there.` : `There is no cell ${target}.`,
      )
    const move = await beginMove(tx, { account, target, drainSeconds: options.drain })
    if (!move) throw new FatalError('The account has moved, or begun to, meanwhile: see signalbox account move status.')
    await recordMove(tx, move, 'begin')
  })
}

async function recordMove(tx: Database, move: MoveRecord, action: 'begin' | 'moved' | 'back'): Promise<void> {
  const { account, source, target, version, reason } = move
  const detail = { from: source ?? 'home', to: target ?? 'home', version, reason }
  await recordCommandAudit(tx, { action: `account-move.${action}`, account, target: account, detail })
}

async function run(resources: Resources, account: AccountId): Promise<MoveEnd> {
  const { runMove } = await import('../../carriage/move/mover.ts')
  await using pools = buildPools(resources)
  // Awaited here: the pools are closed when this function ends.
  return await runMove(
    {
      open: pools.open,
      openLog: () => openLog(resources),
      runner: `command ${buildIdMaker(systemClock, systemRandom).next()}`,
      sleep: (ms) => systemClock.sleep(ms, new AbortController().signal),
      record: (tx, { move, kind }) => recordMove(tx, move, kind),
      onProgress: buildReporter(),
    },
    account,
  )
}

async function openLog({ config: { eventLog } }: Resources): Promise<EventLog> {
  if (!eventLog)
    throw new FatalError('EVENT_LOG_URL is not set: give the command the settings of the service, and run it again.')
  const { openNatsLog } = await import('../../carriage/nats/nats-log.ts')
  return openNatsLog(eventLog, { name: 'signalbox account move' })
}

/** Opens the databases of a move, each once. */
function buildPools({ maintenanceDatabase, secrets }: Resources) {
  const home = maintenanceDatabase.db
  const keyring = buildKeyring(secrets.secretKey, systemRandom)
  const opened = new Map<string, DatabasePool>()
  return {
    open: async (place: Place): Promise<Database> => {
      if (place === null) return home
      const { findCellUrl } = await import('../../carriage/move/move.store.ts')
      const { INDEX_ONLY_PLANS, openDatabase } = await import('../../postgres/statement/database.ts')
      const sealed = await findCellUrl(home, { name: place })
      if (sealed === undefined) throw new FatalError(`There is no cell ${place}.`)
      const pool =
        opened.get(place) ??
        openDatabase({
          connectionString: keyring.open(sealed, `cell:${place}`),
          ...{ size: 2, applicationName: 'signalbox move', settings: INDEX_ONLY_PLANS, onError: () => {} },
        })
      opened.set(place, pool)
      return pool.db
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...opened.values()].map((pool) => pool.close()))
    },
  }
}

const REPORT_ROWS = 100_000

/** One line a step, and one for each 100,000 rows. */
function buildReporter(): (progress: MoveProgress) => void {
  let last = ''
  return ({ step, effect, waits, rows }) => {
    const line = waits
      ? `${step}: waits (${effect})`
      : `${step}${rows < REPORT_ROWS ? '' : `: ${rows - (rows % REPORT_ROWS)} rows`}`
    if (line !== last) print(line)
    last = line
  }
}

function report(end: MoveEnd): void {
  if (end.kind === 'none') throw new FatalError('There is no move of this account to go on with. Give a place.')
  if (end.kind === 'taken')
    throw new FatalError('Another process moves this account: see signalbox account move status.')
  if (end.kind === 'moved') print(`Moved, with ${end.rows} rows copied by this command.`)
  else if (end.reason === 'drain_limit')
    throw new FatalError(
      'The account stays where it was: attempts or leases under way, or the event log, did not end in time. Give --drain more seconds, or see docs/operations/account-move.md, waiting.',
    )
  else print('The account stays where it was.')
}

function parseSubject(value: string): string {
  if (value !== 'status' && !isUuid(value))
    throw new InvalidArgumentError('It must be the document_id of an account, or status.')
  return value
}
