import type { AccountId, IdMaker, UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import { ENGLISH, findLanguage } from '../../base/language/texts.ts'
import { ACCOUNT_ADMIN_ROLE } from '../../identity/access/system-roles.ts'
import { findWebhookMailRooms, writeMails } from '../../identity/mail/outbox.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  type DueNotice,
  holdNoticesBack,
  insertMailRecipients,
  listOperatorReaders,
  listReaders,
  type MailReader,
  takeHeldNotices,
} from './notice.store.ts'
import { GLOBAL_WEBHOOKS, MAIL_KINDS, type MailKind } from './notice.ts'
import { buildNoticeMail } from './notice-mail.ts'
import { UNSUBSCRIBE } from './unsubscribe-page.ts'
import { buildUnsubscribeToken } from './unsubscribe-token.ts'

/** Maximum number of recipients in one turn. */
export const READERS_LIMIT = 100

/** The patterns of a role beyond accounts that let an operator change all global webhooks, and so get their mails. */
export const GLOBAL_WEBHOOK_PATTERNS: readonly string[] = ['*:*', 'webhook:*', 'webhook:update']

const LIFETIME_MS = 24 * 3_600_000

/** The kind of these mails in the outbox. */
export const WEBHOOK_MAIL = 'webhook'

export interface NoticeMailDeps {
  ids: IdMaker
  keyring: Pick<Keyring, 'seal' | 'deriveKeys'>
  /** `BASE_URL`. */
  baseUrl: () => string
  /** `BRAND_NAME`. */
  serviceName: string
}

/** The account of the notices, or `GLOBAL_WEBHOOKS` without a name. */
interface ToldAccount {
  account: AccountId
  accountName: string
}

/** Writes the mails about notices to the outbox of home, as many as addresses have room for. Returns their number. */
export async function writeNoticeMails(
  deps: NoticeMailDeps,
  tx: Database,
  { told, now, ...turn }: ToldAccount & { told: readonly DueNotice[]; now: Date },
): Promise<number> {
  const { account } = turn
  const readers = told.length > 0 ? await findReaders(tx, account, told) : []
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
  return drafts.length
}

function findReaders(tx: Database, account: AccountId, told: readonly DueNotice[]): Promise<MailReader[]> {
  const limit = READERS_LIMIT
  if (account === GLOBAL_WEBHOOKS) return listOperatorReaders(tx, { patterns: GLOBAL_WEBHOOK_PATTERNS, limit })
  const contacts = [...new Set(told.flatMap((notice) => notice.contacts))]
  return listReaders(tx, { account, contacts, administrator: ACCOUNT_ADMIN_ROLE, limit })
}

/** Mails that the address of a user may still get, and the notices that were held back before. */
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
  { baseUrl, serviceName, keyring }: NoticeMailDeps,
  { account, accountName }: ToldAccount,
  { reader: { user, email: to, language }, mails }: MailPlan,
) {
  return mails.map((mail) => {
    const texts = findLanguage([language]) ?? ENGLISH
    const links = { baseUrl: baseUrl(), unsubscribe: buildUnsubscribeUrl({ baseUrl, keyring }, user) }
    const content = buildNoticeMail({ texts, account, accountName, ...mail, serviceName, ...links })
    return { user, to, content, webhooks: mail.notices.map(({ webhook }) => webhook) }
  })
}

function buildUnsubscribeUrl(
  { baseUrl, keyring }: Pick<NoticeMailDeps, 'baseUrl'> & { keyring: Pick<Keyring, 'deriveKeys'> },
  user: UserId,
): string {
  return `${baseUrl()}${UNSUBSCRIBE}?token=${buildUnsubscribeToken(keyring, user)}`
}
