import type { UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { rowStatement } from '../../postgres/statement/statement.ts'

export const MAIL_LANGUAGES = ['en', 'de'] as const

export interface MailSetting {
  /** Whether the user gets no mails. */
  isStopped: boolean
  /** Webhooks about which the user gets no mails. */
  stoppedWebhooks: string[]
  language: (typeof MAIL_LANGUAGES)[number]
}

/** A setting with its times; those of the user before the first change. */
export interface StoredMailSetting extends MailSetting {
  createdAt: Date
  updatedAt: Date
}

/** Finds the setting of a user. Undefined for an unknown or deleted user. */
export const findMailSetting = rowStatement<StoredMailSetting, { user: UserId }>(`
  select coalesce(s.is_stopped, false) as "isStopped", coalesce(s.stopped_webhooks, '{}') as "stoppedWebhooks",
    coalesce(s.language, 'en') as language, coalesce(s.created_at, u.created_at) as "createdAt",
    coalesce(s.updated_at, u.created_at) as "updatedAt"
  from "user" u left join webhook_mail_setting s on s."user" = u.document_id
  where u.document_id = $user and u.deleted_at is null`)

/** The changed members; others stay. */
type MailSettingChange = { [Name in keyof MailSetting]?: MailSetting[Name] | undefined }

type Change = { [Name in keyof MailSetting]: MailSetting[Name] | null } & { user: UserId; now: Date }

const change = rowStatement<StoredMailSetting, Change>(`
  insert into webhook_mail_setting as s ("user", is_stopped, stopped_webhooks, language, created_at, updated_at)
  select u.document_id, coalesce($isStopped::boolean, false), coalesce($stoppedWebhooks::uuid[], '{}'),
    coalesce($language::text, 'en'), $now, $now
  from "user" u where u.document_id = $user and u.deleted_at is null
  on conflict ("user") do update set is_stopped = coalesce($isStopped::boolean, s.is_stopped),
    stopped_webhooks = coalesce($stoppedWebhooks::uuid[], s.stopped_webhooks),
    language = coalesce($language::text, s.language), updated_at = $now
  where (coalesce($isStopped::boolean, s.is_stopped), coalesce($stoppedWebhooks::uuid[], s.stopped_webhooks),
      coalesce($language::text, s.language)) is distinct from (s.is_stopped, s.stopped_webhooks, s.language)
  returning s.is_stopped as "isStopped", s.stopped_webhooks as "stoppedWebhooks", s.language,
    s.created_at as "createdAt", s.updated_at as "updatedAt"`)

/** Changes the setting of a user; `isChanged` false for an equal one. Undefined for an unknown or deleted user. */
export async function changeMailSetting(
  db: Database,
  user: UserId,
  { isStopped, stoppedWebhooks, language }: MailSettingChange,
  now: Date,
): Promise<{ setting: StoredMailSetting; isChanged: boolean } | undefined> {
  const changed = await change(db, {
    ...{ user, now, isStopped: isStopped ?? null, language: language ?? null },
    stoppedWebhooks: stoppedWebhooks ?? null,
  })
  if (changed) return { setting: changed, isChanged: true }
  const setting = await findMailSetting(db, { user })
  return setting && { setting, isChanged: false }
}
