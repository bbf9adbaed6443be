import { enumSchema, namedObject, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { MAIL_LANGUAGES, type StoredMailSetting } from './mail-setting.store.ts'

const members = {
  is_stopped: Type.Boolean({ description: 'Whether the user gets no mails about webhooks.' }),
  stopped_webhooks: Type.Array(UuidSchema, {
    maxItems: 1000,
    description: 'Ids of webhooks of which the user gets no mails.',
  }),
  language: enumSchema(MAIL_LANGUAGES, { description: 'Language of these mails, BCP 47.' }),
}

/** Setting of a user for mails about webhooks (docs/contract/delivery.md#stopping-mails). */
export const WebhookMailRow = namedObject('WebhookMail', {
  ...members,
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

/** An absent member stays. */
export const UpdateWebhookMailBody = namedObject(
  'UpdateWebhookMail',
  {
    is_stopped: Type.Optional(members.is_stopped),
    stopped_webhooks: Type.Optional(members.stopped_webhooks),
    language: Type.Optional(members.language),
  },
  { minProperties: 1 },
)

/** Maps a setting for the wire. */
export const toWebhookMailRow = ({
  isStopped,
  stoppedWebhooks,
  language,
  createdAt,
  updatedAt,
}: StoredMailSetting) => ({
  is_stopped: isStopped,
  stopped_webhooks: stoppedWebhooks,
  language,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
})
