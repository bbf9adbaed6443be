import { enumSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { REPLAY_JOB_ROWS_LIMIT, type ReplayPreview } from './replay-job-record.ts'

/** Selection and options of a bulk replay. */
export const BulkReplayBody = namedObject('CreateReplayJob', {
  filters: Type.Array(Type.String(), {
    minItems: 1,
    maxItems: 20,
    description:
      'Filters as in the list of dispatches: each `<field>|<operator>|<values>`; a row has to match all of them.',
  }),
  confirm_duplicate: Type.Optional(
    Type.Boolean({
      description:
        'Replay `success`, `pending` and `retrying` rows too: their events may have arrived. Otherwise they are skipped.',
    }),
  ),
  dry_run: Type.Optional(Type.Boolean({ description: 'Return the expected result, and change nothing.' })),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: REPLAY_JOB_ROWS_LIMIT, description: 'Only the oldest so many of the rows.' }),
  ),
})

const SkippedReasonsSchema = namedObject(
  'SkippedReasons',
  {
    webhook_inactive: Type.Optional(Type.Integer({ description: 'The webhook is inactive or deleted.' })),
    not_confirmed: Type.Optional(
      Type.Integer({ description: 'It may have arrived, and `confirm_duplicate` was not sent.' }),
    ),
    under_way: Type.Optional(Type.Integer({ description: 'An attempt was in flight.' })),
    event_gone: Type.Optional(Type.Integer({ description: 'Its event is no longer stored.' })),
    replay_waiting: Type.Optional(Type.Integer({ description: 'A replay of it waited already.' })),
    gone: Type.Optional(Type.Integer({ description: 'It was deleted after the job was created.' })),
  },
  { description: 'How many rows were not replayed, by reason.' },
)

/** A bulk replay as the API shows it. */
export const ReplayJobRow = namedObject('ReplayJob', {
  document_id: UuidSchema,
  status: enumSchema(['running', 'paused', 'done', 'cancelled', 'failed'], {
    description: '`failed`: several rounds failed in a row; a resume continues after the last processed row.',
  }),
  filters: Type.Array(Type.String()),
  confirm_duplicate: Type.Boolean(),
  accounts: nullable(
    Type.Array(UuidSchema, { description: 'The accounts to whose rows it is limited; null: all accounts.' }),
  ),
  total: Type.Integer({ description: 'Rows of the job, fixed at its creation.' }),
  processed: Type.Integer({ description: 'Rows dealt with: replayed or skipped.' }),
  replayed: Type.Integer({ description: 'Rows put on their way, one POST each.' }),
  skipped: Type.Integer(),
  skipped_reasons: SkippedReasonsSchema,
  last_error: nullable(Type.String()),
  created_by: nullable(UuidSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
  ended_at: nullable(TimestampSchema),
})

const PreviewedWebhook = namedObject('ReplayPreviewWebhook', {
  webhook: UuidSchema,
  is_active: Type.Boolean({ description: 'Whether it is active and not deleted; the rows of others are skipped.' }),
  total: Type.Integer({ description: 'Rows of the webhook.' }),
  succeeded: Type.Integer(),
})

/** Preview of a bulk replay. */
export const ReplayPreviewRow = namedObject('ReplayPreview', {
  dry_run: Type.Literal(true),
  matched: Type.Integer({ description: 'Rows that match the filters; 10,000 stands for that many or more.' }),
  is_matched_exact: Type.Boolean({ description: 'False when the filters name more rows than `matched`.' }),
  total: Type.Integer({ description: 'Rows that the job would hold.' }),
  would_replay: Type.Integer(),
  would_skip: Type.Integer(),
  skipped_reasons: SkippedReasonsSchema,
  succeeded: Type.Integer({ description: 'Rows whose event has arrived; a replay of them is a duplicate.' }),
  to_inactive: Type.Integer({ description: 'Rows of webhooks that are inactive or deleted.' }),
  webhooks: Type.Integer({ description: 'Webhooks that the rows are of.' }),
  by_webhook: Type.Array(PreviewedWebhook, {
    description: 'The webhooks with the most rows, at most 50, the one with the most first.',
  }),
})

/** Maps a preview for the wire. */
export function toReplayPreviewRow(preview: ReplayPreview): Static<typeof ReplayPreviewRow> {
  return {
    dry_run: true,
    matched: preview.matched,
    is_matched_exact: preview.isMatchedExact,
    total: preview.total,
    would_replay: preview.wouldReplay,
    would_skip: preview.wouldSkip,
    skipped_reasons: preview.skippedReasons,
    succeeded: preview.succeeded,
    to_inactive: preview.toInactive,
    webhooks: preview.webhooks,
    by_webhook: preview.byWebhook.map(({ webhook, isActive, total, succeeded }) => ({
      webhook,
      is_active: isActive,
      total,
      succeeded,
    })),
  }
}
