import type { UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'

/** Languages of these mails. */
export const MAIL_LANGUAGES = ['en', 'de'] as const

/** What a user wants of the mails about webhooks. */
export interface MailSetting {
  /** Whether the user gets none. */
  isStopped: boolean
  /** Webhooks of which the user gets none. */
  stoppedWebhooks: string[]
  language: (typeof MAIL_LANGUAGES)[number]
}

const DEFAULT: MailSetting = { isStopped: false, stoppedWebhooks: [], language: 'en' }

const MEMBERS = 's.is_stopped as "isStopped", s.stopped_webhooks as "stoppedWebhooks", s.language'
const select = statement<MailSetting, { user: UserId }>(
  `select ${MEMBERS} from webhook_mail_setting s where s."user" = $user`,
)

/** What a user wants. */
export async function findMailSetting(db: Database, user: UserId): Promise<MailSetting> {
  const [row] = await select(db, { user })
  return row ?? DEFAULT
}

/** The changed members; others stay. */
type MailSettingChange = { [Name in keyof MailSetting]?: MailSetting[Name] | undefined }

type Change = { [Name in keyof MailSetting]: MailSetting[Name] | null } & { user: UserId; now: Date }

const change = statement<MailSetting, Change>(`
  insert into webhook_mail_setting as s ("user", is_stopped, stopped_webhooks, language, updated_at)
  select u.document_id, coalesce($isStopped::boolean, false), coalesce($stoppedWebhooks::uuid[], '{}'),
    coalesce($language::text, 'en'), $now
  from "user" u where u.document_id = $user and u.deleted_at is null
  on conflict ("user") do update set is_stopped = coalesce($isStopped::boolean, s.is_stopped),
    stopped_webhooks = coalesce($stoppedWebhooks::uuid[], s.stopped_webhooks),
    language = coalesce($language::text, s.language), updated_at = $now
  returning ${MEMBERS}`)

/** Changes what a user wants. Undefined for an unknown or deleted user. */
export async function changeMailSetting(
  db: Database,
  user: UserId,
  { isStopped, stoppedWebhooks, language }: MailSettingChange,
  now: Date,
): Promise<MailSetting | undefined> {
  const [row] = await change(db, {
    ...{ user, now, isStopped: isStopped ?? null, language: language ?? null },
    stoppedWebhooks: stoppedWebhooks ?? null,
  })
  return row
}
