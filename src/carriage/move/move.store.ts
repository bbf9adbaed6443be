import type { AccountId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { ADVISORY_LOCKS } from '../../postgres/statement/locks.ts'
import {
  changeStatement,
  rowStatement,
  soleRowStatement,
  statement,
  testStatement,
  valueStatement,
} from '../../postgres/statement/statement.ts'
import type { AccountMove, FenceState, MoveStep, Place } from './move-plan.ts'

/** The last key of a part of the ledger that was copied; null: the part is complete. */
export interface CopiedKey {
  at: string
  id: string
}

/** Progress of the copy: the last key of each part that has been begun, null for a complete one. */
export interface CopyProgress {
  parts?: Record<string, CopiedKey | null>
  /** The last ordinal of the source before the copy, and the rows so far. */
  ordinal?: number
  rows?: number
}

export interface MoveRecord extends AccountMove {
  epoch: number
  copied: CopyProgress
  reason: string | null
  runner: string | null
  isLeased: boolean
  /** Whether it has had no runner for a while. */
  isInterrupted: boolean
  /** Whether it has waited too long for what is under way. */
  isLate: boolean
  createdAt: Date
  updatedAt: Date
}

/** How long a runner has a move without a sign of life, in seconds. */
const LEASE = `interval '15 seconds'`

const MOVE = `account, source, target, version::float8 as version, step, epoch::float8 as epoch, copied, reason, runner,
  coalesce(lease_until > clock_timestamp(), false) as "isLeased", drain_until < clock_timestamp() as "isLate",
  coalesce(lease_until, updated_at + ${LEASE}) < clock_timestamp() as "isInterrupted",
  created_at as "createdAt", updated_at as "updatedAt"`

/** Begins a move, unless the account is in `target` or moving. `drainSeconds`: wait for what is under way. */
export const beginMove = rowStatement<MoveRecord, { account: AccountId; target: Place; drainSeconds: number }>(`
  insert into account_move (account, source, target, version, step, drain_until, created_at, updated_at)
  select $account::uuid, c.cell, $target::text, coalesce(c.version, 0) + 1, 'hold',
    clock_timestamp() + $drainSeconds::int * interval '1 second', clock_timestamp(), clock_timestamp()
  from (select) one left join account_cell c on c.account = $account
  where c.cell is distinct from $target::text
  on conflict (account) do nothing
  returning ${MOVE}`)

/** The move of an account that has not ended. */
export const findMove = rowStatement<MoveRecord, { account: AccountId }>(
  `select ${MOVE} from account_move where account = $account`,
)

/** The state of a cell, which stays until the transaction ends. */
export const lockMoveCell = valueStatement<string | undefined, { name: string }>(
  'select state from cell where name = $name for share',
)

/** The sealed connection string of a cell. */
export const findCellUrl = valueStatement<string | undefined, { name: string }>(
  'select database_url_encrypted as url from cell where name = $name',
)

/** Whether an account exists, and where it is. */
export const findMoveAccount = soleRowStatement<{ isKnown: boolean; cell: Place }, { account: AccountId }>(`
  select exists (select from account where document_id = $account and deleted_at is null) as "isKnown",
    (select c.cell from account_cell c where c.account = $account) as cell`)

/** The moves that have not ended, oldest first. */
export const listMoves = statement<MoveRecord>(`select ${MOVE} from account_move order by created_at limit 1000`)

/** Takes a move over; undefined while another process has it. */
export const takeMove = rowStatement<MoveRecord, { account: AccountId; runner: string }>(`
  update account_move set runner = $runner, lease_until = clock_timestamp() + ${LEASE}, epoch = nextval('account_move_epoch')
  where account = $account and (runner is null or lease_until < clock_timestamp() or runner = $runner)
  returning ${MOVE}`)

/** The runner of a move: another epoch is another runner. */
export interface RunnerKey {
  account: AccountId
  epoch: number
}

/** Renews the lease, and reads the move; undefined when another process has it. */
export const renewMove = rowStatement<MoveRecord, RunnerKey>(`
  update account_move set lease_until = clock_timestamp() + ${LEASE}
  where account = $account and epoch = $epoch::float8::bigint returning ${MOVE}`)

/** Gives a move up: any process may take it over at once. */
export const releaseMove = changeStatement<RunnerKey>(`
  update account_move set runner = null, lease_until = null where account = $account and epoch = $epoch::float8::bigint`)

const step = testStatement<RunnerKey & { from: MoveStep; to: MoveStep; reason: string | null }>(`
  update account_move set step = $to, reason = coalesce($reason, reason), updated_at = clock_timestamp()
  where account = $account and epoch = $epoch::float8::bigint and step = $from`)

/** Writes the next step. False when another process has the move. */
export async function writeStep(
  db: Database,
  given: RunnerKey & { from: MoveStep; to: MoveStep; reason?: string },
): Promise<boolean> {
  return step(db, { reason: null, ...given })
}

const progress = testStatement<RunnerKey & { copied: string }>(`
  update account_move set copied = $copied::jsonb, updated_at = clock_timestamp(),
    lease_until = clock_timestamp() + ${LEASE}
  where account = $account and epoch = $epoch::float8::bigint`)

/** Writes what is copied. False when another process has the move. */
export async function writeCopied(db: Database, key: RunnerKey, copied: CopyProgress): Promise<boolean> {
  return progress(db, { ...key, copied: JSON.stringify(copied) })
}

/** Asks for the way back. False without a move that may go back. */
export const askBack = testStatement<{ account: AccountId; reason: string }>(`
  update account_move set reason = $reason, updated_at = clock_timestamp()
  where account = $account and step in ('hold', 'drain', 'copy')`)

/** Writes the directory. False when another process has the move. */
export const writeDirectory = testStatement<RunnerKey & { cell: Place; version: number }>(`
  with mine as (
    select account from account_move where account = $account and epoch = $epoch::float8::bigint for update
  )
  insert into account_cell (account, cell, version)
  select account, $cell::text, $version::float8::bigint from mine
  on conflict (account) do update set cell = excluded.cell, version = excluded.version
  returning account`)

/** Ends a move. False when another process has it. */
export const endMove = testStatement<RunnerKey>(
  'delete from account_move where account = $account and epoch = $epoch::float8::bigint',
)

/** Lets a database check its writes by the fences of accounts, from the first move on. */
export const openFence = changeStatement('select open_fence()')

/** Tells a database of a runner: earlier ones change nothing there any more. False when a later one was there. */
export const claimFence = testStatement<RunnerKey>(`
  insert into account_fence as f (account, version, state, epoch)
  select $account::uuid, 0,
    case when exists (select from database_identity where cell is not null) then 'gone' else 'open' end,
    $epoch::float8::bigint
  on conflict (account) do update set epoch = excluded.epoch where f.epoch <= excluded.epoch
  returning f.state`)

const lockFence = valueStatement<FenceState | undefined, RunnerKey>(
  `select state from account_fence where account = $account and epoch = $epoch::float8::bigint for update`,
)

const passAs = statement<object, { account: AccountId }>(
  `select set_config('signalbox.moved_account', $account::text, true)`,
)

/** Names the account that a transaction is about, for `readState`. */
export async function nameMovedAccount(tx: Database, account: AccountId): Promise<void> {
  await passAs(tx, { account })
}

/**
 * Makes a transaction that of a runner: its rows pass the fence, and those of an earlier runner are refused. Undefined
 * when another process has the move.
 */
export async function enterMove(tx: Database, { account, epoch }: RunnerKey): Promise<FenceState | undefined> {
  const state = await lockFence(tx, { account, epoch })
  if (state) await passAs(tx, { account })
  return state
}

/** The version of a fence: the last write of a copy sets that of its move. */
export const readFenceVersion = valueStatement<number | undefined, { account: AccountId }>(
  'select version::float8 as version from account_fence where account = $account',
)

const lockAccount = statement<object, { account: AccountId; limit: string }>(`
  select set_config('lock_timeout', $limit, true),
    pg_advisory_xact_lock(hashtextextended('${ADVISORY_LOCKS.accountFence.key}' || $account::uuid::text, 0))`)

/** How long a hold waits at once, in ms: who comes later waits behind it. */
const HOLD_WAIT_MS = 1_000

/** Waits for the transactions that passed the fence. Throws the lock timeout when one of them lasts. */
export async function lockPassed(tx: Database, account: AccountId): Promise<void> {
  await lockAccount(tx, { account, limit: `${HOLD_WAIT_MS}` })
}

/** Sets the fence, behind `enterMove`. */
export const writeFence = changeStatement<{ account: AccountId; state: FenceState; version: number }>(`
  update account_fence set state = $state, version = greatest(version, $version::float8::bigint)
  where account = $account`)
