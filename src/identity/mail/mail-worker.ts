import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { type Keyring, KeyringError } from '../../base/keyring.ts'
import { type Loop, runRounds } from '../../base/rounds.ts'
import type { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import { type Database, isDatabaseUnavailable } from '../../postgres/statement/database.ts'
import { type MailContent, MailError, type MailTransport } from './mail.ts'
import { type MailTemplate, renderMail } from './mail-template.ts'
import { type ClaimedMail, claimMails, endMail, giveBackMail, postponeMail } from './outbox.store.ts'
import { mailContextOf } from './outbox.ts'

const POLL_MS = 1_000

/** Number of mails in one claim; they are sent one after the other. */
const BATCH_SIZE = 10

/** Lease of a claim: longer than a batch with a server that does not answer. */
const LEASE_MS = 10 * 60_000

/** Timeout of a stop for the mail being sent. A hanging server must not block the process. */
const STOP_GRACE_MS = 5_000

/** The delay after an attempt that this process could not make and that does not count. */
const OWN_FAULT_WAIT_MS = 10_000

/** The delay after each failed attempt; a mail is dropped after the last one. */
export const RETRY_DELAYS_MS = [10_000, 60_000, 5 * 60_000, 15 * 60_000]

/** The delay after a check whose database was away; it does not count as an attempt. */
const UNKNOWN_WAIT_MS = 30_000

/** By the kind of a mail, whether it may still be sent; `unknown` while a database that says so is away. */
export type MailChecks = Readonly<
  Record<string, (db: Database, mail: Pick<ClaimedMail, 'id' | 'to'>) => Promise<boolean | 'unknown'>>
>

/** Dependencies of the worker. */
export interface MailWorkerDeps {
  db: Database
  clock: Clock
  /** Sleeps in real time: the grace of a stop bounds the network. */
  rest: Clock['sleep']
  /** Whether the clock is trusted; otherwise no mail is claimed. */
  isTrusted: () => boolean
  logger: Logger
  keyring: Pick<Keyring, 'open'>
  template: MailTemplate
  /** Runs for each attempt that this process could not make, for the metric. */
  onOwnFault?: (fault: OwnFault) => void
  /** Whether a mail may still be sent, by its kind; others always. Runs before each attempt. */
  checks?: MailChecks
  /** Undefined where no mail is sent: nothing is written then, and the worker does nothing. */
  transport: MailTransport | undefined
}

/** Sends the mails of the outbox. One for each process with the role `maintenance`; one at a time sends a mail. */
export interface MailWorker extends Loop {
  /** Attempts every due mail. Returns the number of attempts. */
  drain(): Promise<number>
}

/** Builds the worker. Nothing runs before `run`. */
export function buildMailWorker(deps: MailWorkerDeps): MailWorker {
  const { db, clock, logger, transport } = deps
  const stopping = new AbortController()

  async function drain(): Promise<number> {
    if (!transport || !deps.isTrusted()) return 0
    for (let attempts = 0; ; ) {
      const nowMs = clock.now()
      const leaseEnd = new Date(nowMs + LEASE_MS)
      const claimed = await claimMails(db, { now: new Date(nowMs), leaseEnd, limit: BATCH_SIZE })
      for (const mail of claimed) {
        // A stop releases unstarted mails to other processes at once.
        if (stopping.signal.aborted) await giveBackMail(db, { ...mail, dueAt: new Date(clock.now()) })
        else await attempt(deps, transport, mail)
      }
      attempts += claimed.length
      if (claimed.length < BATCH_SIZE || stopping.signal.aborted) return attempts
    }
  }

  async function loop(): Promise<void> {
    await runRounds({
      ...{ clock, periodMs: POLL_MS, stop: stopping.signal, work: drain },
      onError: (err) => logger.warn({ err }, 'outbox of mails not read: see docs/operations.md, mail'),
    })
    transport?.close()
  }

  /** Ends after the loop, or when a stop has waited long enough for the mail in flight. */
  async function run(): Promise<void> {
    const ended = new AbortController()
    const patience = new Promise<void>((resolve) => {
      stopping.signal.addEventListener('abort', () => void deps.rest(STOP_GRACE_MS, ended.signal).then(resolve))
    })
    await Promise.race([loop(), patience])
    ended.abort()
  }

  return { drain, run, stop: () => stopping.abort() }
}

/** Makes one attempt and records its result. */
async function attempt(deps: MailWorkerDeps, transport: MailTransport, mail: ClaimedMail): Promise<void> {
  const { db, clock, logger } = deps
  const facts = { mail_id: mail.id, kind: mail.kind, attempt: mail.attempts }
  const failure = await findFailure(deps, transport, mail)
  const now = new Date(clock.now())
  if (failure?.isUnknown) {
    logger.warn({ ...facts, wait_ms: UNKNOWN_WAIT_MS }, 'mail waits for a cell: see docs/operations.md, mail')
    await giveBackMail(db, { ...mail, dueAt: new Date(now.getTime() + UNKNOWN_WAIT_MS) })
    return
  }
  if (failure?.ownFault) {
    deps.onOwnFault?.(failure.ownFault)
    const line = { ...facts, code: failure.ownFault.code, wait_ms: OWN_FAULT_WAIT_MS }
    logger.error(line, 'mail not sent for a fault of this process: see docs/operations.md, own faults')
    await giveBackMail(db, { ...mail, dueAt: new Date(now.getTime() + OWN_FAULT_WAIT_MS) })
    return
  }
  if (failure === undefined) {
    await endMail(db, { ...mail, status: 'sent', error: null, now })
    logger.info(facts, 'mail sent')
    return
  }
  const dueAt = failure.isPermanent ? undefined : findNextAttempt(mail, now)
  const error = failure.message
  const line = { ...facts, error, is_given_up: dueAt === undefined }
  if (failure.bug) logger.error({ ...line, ...failure.bug }, 'mail not sent for a bug: see docs/operations.md, mail')
  else logger.warn(line, 'mail not sent: see docs/operations.md, mail')
  if (dueAt) await postponeMail(db, { ...mail, dueAt, error })
  else await endMail(db, { ...mail, status: 'failed', error, now })
}

/** Due time of the next attempt; undefined after the last one, or when the mail would be too late. Pure. */
export function findNextAttempt({ attempts, expiresAt }: Pick<ClaimedMail, 'attempts' | 'expiresAt'>, now: Date) {
  const delayMs = RETRY_DELAYS_MS[attempts - 1]
  const dueAt = delayMs === undefined ? undefined : new Date(now.getTime() + delayMs)
  return dueAt && dueAt < expiresAt ? dueAt : undefined
}

/** Why a mail was not sent. `isUnknown`: whether it may be sent is not known at the moment. */
interface MailFailure {
  message: string
  isPermanent: boolean
  ownFault?: OwnFault | undefined
  isUnknown?: boolean
  /** An error that no mail should meet. */
  bug?: Bug
}

/** The name of an error, and where it was thrown. Its message may have the text of the mail, with a link. */
interface Bug {
  code: string
  at: string[]
}

const describeBug = ({ name, stack = '' }: Error): Bug => ({
  code: name,
  at: stack.split('\n').flatMap((line) => /^ {4}at (.+)/.exec(line)?.[1] ?? []),
})

/** Sends a mail. Undefined when it was accepted. */
async function findFailure(
  { db, keyring, clock, template, checks }: MailWorkerDeps,
  transport: MailTransport,
  mail: ClaimedMail,
): Promise<MailFailure | undefined> {
  const now = new Date(clock.now())
  if (mail.expiresAt <= now) return { message: 'expired', isPermanent: true }
  try {
    const isWanted = await checks?.[mail.kind]?.(db, mail)
    if (isWanted === false) return { message: 'not wanted', isPermanent: true }
    if (isWanted === 'unknown') return { message: 'unknown', isPermanent: false, isUnknown: true }
    const content = JSON.parse(keyring.open(mail.content, mailContextOf(mail.id))) as MailContent
    await transport.send({ ...renderMail(template, content), id: mail.id, to: mail.to }, now)
    return undefined
  } catch (error) {
    if (error instanceof KeyringError) return { message: 'unreadable', isPermanent: true }
    if (error instanceof MailError) return error
    // Without the database no result can be recorded.
    if (isDatabaseUnavailable(error)) throw error
    // The other mails of the batch go out.
    return { message: 'unexpected', isPermanent: false, bug: describeBug(error as Error) }
  }
}
