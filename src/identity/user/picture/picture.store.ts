import type { UserId } from '../../../base/id.ts'
import { closingStatement, rowStatement } from '../../../postgres/statement/statement.ts'

/** Replaces the picture of a locked user, with the last statement of the transaction. */
export const putPicture = closingStatement<{ userId: UserId; key: string; content: Buffer; now: Date }>(`
  kept_picture as (
    insert into user_picture ("user", key, content, created_at) values ($userId, $key, $content, $now)
    on conflict ("user") do update set key = excluded.key, content = excluded.content, created_at = excluded.created_at)`)

/** Deletes the picture of a locked user, with the last statement of the transaction. */
export const removePicture = closingStatement<{ userId: UserId }>(
  'removed_picture as (delete from user_picture where "user" = $userId)',
)

/** The picture with this key. A deletion of its user deletes it too. */
export const findPicture = rowStatement<{ content: Buffer }, { key: string }, Buffer>(
  'select content from user_picture where key = $key',
  ({ content }) => content,
)
