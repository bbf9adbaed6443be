import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { AccountId, IdMaker, UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import { ENGLISH, findLanguage } from '../../base/language/texts.ts'
import { runRounds } from '../../base/rounds.ts'
import { ACCOUNT_ADMIN_ROLE } from '../../identity/access/system-roles.ts'
import type { MailChecks } from '../../identity/mail/mail-worker.ts'
import { findWebhookMailRooms, writeMails } from '../../identity/mail/outbox.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  type DueNotice,
  endMailTurn,
  holdNoticesBack,
  insertMailRecipients,
  isMailWanted,
  listDueNotices,
  listReaders,
  lockDueTurn,
  type MailReader,
  queueTurns,
  takeHeldNotices,
} from './notice.store.ts'
import { MAIL_KINDS, type MailKind } from './notice.ts'
import { buildNoticeMail } from './notice-mail.ts'
import { UNSUBSCRIBE } from './unsubscribe-page.ts'
import { buildUnsubscribeToken } from './unsubscribe-token.ts'

/** Interval between polls for notices. */
const POLL_MS = 5_000

/** Delay between the first notice of an account and its mails. Notices within it share a mail. */
export const COLLECT_S = 60

/** Minimum interval between mails of an account, so that a user gets at most six of a kind an hour. */
export const PACE_S = 600

/** Maximum number of notices and of recipients in one turn; an account with more gets another turn. */
export const NOTICES_LIMIT = 1_000
export const READERS_LIMIT = 100

/** Time after which an unsent mail is dropped. */
const LIFETIME_MS = 24 * 3_600_000

/** The kind of these mails in the outbox. */
export const WEBHOOK_MAIL = 'webhook'

export interface NoticeWorkerDeps {
  db: Database
  ids: IdMaker
  clock: Clock
  /** Whether the clock is trusted; otherwise nothing is written. Default: always. */
  isTrusted?: () => boolean
  logger: Logger
  keyring: Pick<Keyring, 'seal' | 'deriveKeys'>
  /** Whether a transport is configured. */
  canSendMail: boolean
  /** `BASE_URL`. */
  baseUrl: () => string
  /** `BRAND_NAME`. */
  serviceName: string
}

/** Writes the mails about webhooks (docs/contract/delivery.md#mails). One for each process with the role `maintenance`. */
export interface NoticeWorker {
  /** Writes due mails to the outbox. Returns their number. */
  drain(): Promise<number>
  run(): Promise<void>
  stop(): void
}

/** Builds the worker. Nothing runs before `run`. */
export function buildNoticeWorker(deps: NoticeWorkerDeps): NoticeWorker {
  const { db, clock, logger } = deps
  const stopping = new AbortController()

  async function drain(): Promise<number> {
    if (!deps.canSendMail || deps.isTrusted?.() === false) return 0
    while ((await queueTurns(db, { collectS: COLLECT_S, paceS: PACE_S, limit: NOTICES_LIMIT })) > 0);
    for (let mails = 0; ; ) {
      const written = await inTransaction(db, (tx) => takeTurn(deps, tx, new Date(clock.now())))
      if (written === undefined || stopping.signal.aborted) return mails
      mails += written
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
async function takeTurn(deps: NoticeWorkerDeps, tx: Database, now: Date): Promise<number | undefined> {
  const turn = await lockDueTurn(tx, now)
  if (!turn) return undefined
  const { account } = turn
  const notices = await listDueNotices(tx, { account, limit: NOTICES_LIMIT })
  const told = notices.filter(({ holds }) => holds)
  const contacts = [...new Set(told.flatMap((notice) => notice.contacts))]
  const asked = { account, contacts, administrator: ACCOUNT_ADMIN_ROLE, limit: READERS_LIMIT }
  const readers = told.length > 0 ? await listReaders(tx, asked) : []
  const found = await findRoom(tx, readers)
  const plans = readers.map((reader) => planMails(told, reader, found.get(reader.user)))
  const drafts = plans.flatMap((plan) => draftMails(deps, turn, plan))
  const expiresAt = new Date(now.getTime() + LIFETIME_MS)
  const mails = drafts.map(({ to, content }) => ({ kind: WEBHOOK_MAIL, to, content, expiresAt }))
  const ids = await writeMails(deps, tx, mails, now)
  const recipients = drafts.map(({ user, webhooks }, index) => ({ mail: ids[index]!, user, account, webhooks }))
  if (recipients.length > 0) await insertMailRecipients(tx, recipients)
  await holdNoticesBack(
    tx,
    plans.flatMap(({ reader: { user }, held }) => (held > 0 ? [{ user, notices: held }] : [])),
    now,
  )
  const dueAt = notices.length === NOTICES_LIMIT ? new Date(now.getTime() + PACE_S * 1_000) : null
  await endMailTurn(tx, { account, notices, now, dueAt })
  return drafts.length
}

/** What a user may be told: the mails that its address may still get, and the notices that were held back before. */
interface ReaderRoom {
  mails: number
  heldNotices: number
}

/** The room of each reader, behind the locks of their addresses. */
async function findRoom(tx: Database, readers: readonly MailReader[]): Promise<Map<UserId, ReaderRoom>> {
  if (readers.length === 0) return new Map()
  const rooms = await findWebhookMailRooms(tx, readers)
  const told = rooms.filter(({ room }) => room > 0).map(({ user }) => user)
  const held = new Map((await takeHeldNotices(tx, { users: told })).map(({ user, notices }) => [user, notices]))
  return new Map(rooms.map(({ user, room }) => [user, { mails: room, heldNotices: held.get(user) ?? 0 }]))
}

/** The mails of one user: one of each kind, about the webhooks that the user looks after. */
interface MailPlan {
  reader: MailReader
  mails: { kind: MailKind; notices: DueNotice[]; heldNotices: number }[]
  /** Notices that the next mail of the user counts. */
  held: number
}

/** Plans the mails of one user. The first one tells what was held back before. Pure. */
function planMails(told: readonly DueNotice[], reader: MailReader, room: ReaderRoom | undefined): MailPlan {
  const { user, isAdministrator, stoppedWebhooks } = reader
  const { mails: limit, heldNotices } = room ?? { mails: 0, heldNotices: 0 }
  const own = told.filter(
    ({ webhook, contacts }) => (isAdministrator || contacts.includes(user)) && !stoppedWebhooks.includes(webhook),
  )
  const wanted = MAIL_KINDS.map((kind) => ({ kind, notices: own.filter((notice) => notice.kind === kind) })).filter(
    ({ notices }) => notices.length > 0,
  )
  const mails = wanted.slice(0, limit).map((mail, index) => ({ ...mail, heldNotices: index === 0 ? heldNotices : 0 }))
  const untold = wanted.slice(limit).reduce((sum, { notices }) => sum + notices.length, 0)
  return { reader, mails, held: untold + (mails.length === 0 ? heldNotices : 0) }
}

function draftMails(
  { baseUrl, serviceName, keyring }: NoticeWorkerDeps,
  { account, accountName }: { account: AccountId; accountName: string },
  { reader: { user, email: to, language }, mails }: MailPlan,
) {
  return mails.map((mail) => {
    const texts = findLanguage([language]) ?? ENGLISH
    const links = { baseUrl: baseUrl(), unsubscribe: buildUnsubscribeUrl({ baseUrl, keyring }, user) }
    const content = buildNoticeMail({ texts, account, accountName, ...mail, serviceName, ...links })
    return { user, to, content, webhooks: mail.notices.map(({ webhook }) => webhook) }
  })
}

/** The address that stops the mails of a user. */
function buildUnsubscribeUrl(
  { baseUrl, keyring }: Pick<NoticeWorkerDeps, 'baseUrl'> & { keyring: Pick<Keyring, 'deriveKeys'> },
  user: UserId,
): string {
  return `${baseUrl()}${UNSUBSCRIBE}?token=${buildUnsubscribeToken(keyring, user)}`
}

/** The check of these mails before each attempt to send them. */
export const checkWebhookMail: NonNullable<MailChecks[string]> = (db, { id: mail, to }) =>
  isMailWanted(db, { mail, to, administrator: ACCOUNT_ADMIN_ROLE })
