import { sql } from 'kysely'
import type { AccountScope } from '../http/route.ts'
import type { AccountId, WebhookId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { RoutedWebhook } from './routing.ts'

/** A webhook that subscribes to an event type. */
export interface Candidate {
  event: string
  accountScope: AccountScope
  webhook: RoutedWebhook
}

interface CandidateColumns {
  event: string
  account_scope: AccountScope
  document_id: WebhookId
  is_global: boolean
  account: AccountId | null
  created_at: Date
}

/**
 * The active, living webhooks that subscribe to these active event types. They are share-locked on their keys, so that a
 * purge waits for the rows that are being written, instead of leaving them without their webhook; in the order of their
 * ids, as all who lock several do, so that none wait for each other.
 */
export async function listCandidates(db: Database, events: readonly string[]): Promise<Candidate[]> {
  const { rows } = await sql<CandidateColumns>`
    select e.internal as event, e.account_scope, w.document_id, w.is_global, w.account, w.created_at
    from event e
    join webhook_event s on s.event = e.document_id and s.deleted_at is null
    join webhook w on w.document_id = s.webhook and w.deleted_at is null and w.is_actived
    where e.internal = any(${events}) and e.is_actived
    order by w.document_id
    for key share of w`.execute(db)
  return rows.map((row) => ({
    event: row.event,
    accountScope: row.account_scope,
    webhook: {
      id: row.document_id,
      isGlobal: row.is_global,
      account: row.account,
      isActived: true,
      deletedAt: null,
      createdAt: row.created_at,
      isSubscribed: true,
    },
  }))
}
