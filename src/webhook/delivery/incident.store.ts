import type { Database } from '../../postgres/statement/database.ts'
import { columnStatement } from '../../postgres/statement/statement.ts'
import { AUTO_DISABLE_REASON } from './failure-count.ts'

const LIVING = 'select document_id as id from webhook where document_id = any($ids::uuid[]) and deleted_at is null'

const selectDisabled = columnStatement<string, { ids: readonly string[]; reason: string }>(
  `${LIVING} and not is_actived and disabled_reason = $reason`,
)

/** The webhooks among these that the service has disabled. */
export function listDisabled(db: Database, ids: readonly string[]): Promise<string[]> {
  return selectDisabled(db, { ids, reason: AUTO_DISABLE_REASON })
}

/** The webhooks among these whose last delivery failed. */
export const listFailing = columnStatement<string, { ids: readonly string[] }>(`${LIVING} and consecutive_failures > 0`)
