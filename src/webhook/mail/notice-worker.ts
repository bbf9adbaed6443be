import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { AccountId } from '../../base/id.ts'
import { type Loop, runRounds } from '../../base/rounds.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { endLeasedTurn, giveTurnBack, leaseDueTurn, noteTold, takeNotices } from './cell-notice.store.ts'
import {
  type DueNotice,
  endMailTurn,
  findAccountName,
  listDueNotices,
  lockDueTurn,
  queueTurns,
} from './notice.store.ts'
import { type NoticeMailDeps, writeNoticeMails } from './notice-mails.ts'

const POLL_MS = 5_000

/** Delay between the first notice of an account and its mails. Notices within it share a mail. */
export const COLLECT_S = 60

/** Minimum interval between mails of an account, so that a user gets at most six of a kind an hour. */
export const PACE_S = 600

/** Maximum number of notices in one turn; an account with more gets another turn. */
export const NOTICES_LIMIT = 1_000

/** Lease of a turn in a cell: longer than its mails take to be written. */
const LEASE_MS = 60_000

/** The wait of a turn in a cell after home did not write its mails. */
const HOME_AWAY_MS = 15_000

export interface NoticeWorkerDeps extends NoticeMailDeps {
  /** Home, where the users and the outbox are. */
  db: Database
  /** The cell whose notices are mailed. Default: those of home. */
  cell?: {
    db: Database
    /** Age from which on a notice is not told: home forgets then which it has told (`WEBHOOK_LEDGER_RETENTION_DAYS`). */
    keptMs: number
  }
  clock: Clock
  /** Whether the clock is trusted; otherwise nothing is written. */
  isTrusted: () => boolean
  logger: Logger
  /** Whether a transport is configured. */
  canSendMail: boolean
}

/** Writes the mails about webhooks of one database (docs/contract/delivery.md#mails); in the role `maintenance`. */
export interface NoticeWorker extends Loop {
  /** Writes due mails to the outbox. Returns their number. */
  drain(): Promise<number>
}

/** Builds the worker. Nothing runs before `run`. */
export function buildNoticeWorker(deps: NoticeWorkerDeps): NoticeWorker {
  const { db, cell, clock, logger } = deps
  const stopping = new AbortController()

  const takeTurn = (now: Date) =>
    cell ? takeTurnOfCell(deps, cell, now) : inTransaction(db, (tx) => takeTurnOfHome(deps, tx, now))

  async function drain(): Promise<number> {
    if (!deps.canSendMail || !deps.isTrusted()) return 0
    const pace = { collectS: COLLECT_S, paceS: PACE_S, limit: NOTICES_LIMIT }
    while ((await queueTurns(cell?.db ?? db, pace)) > 0);
    for (let mails = 0; ; ) {
      const written = await takeTurn(new Date(clock.now()))
      mails += written ?? 0
      if (written === undefined || stopping.signal.aborted) return mails
    }
  }

  return {
    drain,
    run: () =>
      runRounds({
        ...{ clock, periodMs: POLL_MS, stop: stopping.signal, work: drain },
        onError: (err) => logger.warn({ err }, 'mails about webhooks not written: see docs/operations.md, mail'),
      }),
    stop: () => stopping.abort(),
  }
}

/** Writes the mails of the account whose turn it is. Returns their number; undefined when no turn is due. */
async function takeTurnOfHome(deps: NoticeWorkerDeps, tx: Database, now: Date): Promise<number | undefined> {
  const turn = await lockDueTurn(tx, { now })
  if (!turn) return undefined
  const { account } = turn
  const notices = await listDueNotices(tx, { account, limit: NOTICES_LIMIT })
  const told = notices.filter(({ holds, isTold }) => holds && !isTold)
  const mails = await writeNoticeMails(deps, tx, { ...turn, told, now })
  await endMailTurn(tx, { account, notices, now, nextAt: findNextTurn(now) })
  return mails
}

const findNextTurn = (now: Date) => new Date(now.getTime() + PACE_S * 1_000)

/** The same for an account in a cell, in three transactions: the cell leases the turn, home writes, the cell ends it. */
async function takeTurnOfCell(
  deps: NoticeWorkerDeps,
  cell: NonNullable<NoticeWorkerDeps['cell']>,
  now: Date,
): Promise<number | undefined> {
  const turn = await inTransaction(cell.db, (tx) => leaseTurn(tx, now))
  if (!turn) return undefined
  const { account, notices } = turn
  const edgeMs = now.getTime() - cell.keptMs
  const told = notices.filter(({ holds, noticedAt }) => holds && noticedAt.getTime() > edgeMs)
  const mails = await inTransaction(deps.db, (tx) => tell(deps, tx, { account, told, now })).catch(async (error) => {
    await giveTurnBack(cell.db, { account, notices, dueAt: new Date(now.getTime() + HOME_AWAY_MS) })
    throw error
  })
  await inTransaction(cell.db, (tx) => endLeasedTurn(tx, { account, notices, now, nextAt: findNextTurn(now) }))
  return mails
}

async function leaseTurn(tx: Database, now: Date): Promise<{ account: AccountId; notices: DueNotice[] } | undefined> {
  const account = await leaseDueTurn(tx, { now, leaseEnd: new Date(now.getTime() + LEASE_MS) })
  if (!account) return undefined
  const notices = await listDueNotices(tx, { account, limit: NOTICES_LIMIT })
  await takeNotices(tx, notices)
  return { account, notices }
}

/** In home: the notices are noted as told with their mails, so a turn that is taken again after a crash tells none twice. */
async function tell(
  deps: NoticeWorkerDeps,
  tx: Database,
  { account, told, now }: { account: AccountId; told: readonly DueNotice[]; now: Date },
): Promise<number> {
  const accountName = await findAccountName(tx, { account })
  const fresh = accountName === undefined ? [] : await noteTold(tx, told, now)
  return fresh.length > 0
    ? writeNoticeMails(deps, tx, { account, accountName: accountName ?? '', told: fresh, now })
    : 0
}
