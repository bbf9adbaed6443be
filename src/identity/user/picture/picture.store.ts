import type { UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { closingStatement, statement } from '../../../postgres/statement/statement.ts'

/** Replaces the picture of a locked user, with the last statement of the transaction. */
export const putPicture = closingStatement<{ userId: UserId; key: string; content: Buffer; now: Date }>(`
  kept_picture as (
    insert into user_picture ("user", key, content, created_at) values ($userId, $key, $content, $now)
    on conflict ("user") do update set key = excluded.key, content = excluded.content, created_at = excluded.created_at)`)

const remove = closingStatement<{ userId: UserId }>(
  'removed_picture as (delete from user_picture where "user" = $userId)',
)

/** Deletes the picture of a locked user, with the last statement of the transaction. */
export async function removePicture(db: Database, userId: UserId): Promise<void> {
  await remove(db, { userId })
}

const select = statement<{ content: Buffer }, { key: string }>('select content from user_picture where key = $key')

/** The picture with this key. A deletion of its user deletes it too. */
export async function findPicture(db: Database, key: string): Promise<Buffer | undefined> {
  return (await select(db, { key }))[0]?.content
}
