import type { Database } from '../postgres/database.ts'
import { statement } from '../postgres/statement.ts'

const deleteIdle = statement<{ worker_id: string }>(`
  delete from delivery_worker w
  where w.lease_until < $1 and not exists (select from webhook_dispatch_open d where d.lease_owner = w.worker_id)
    and not exists (select from realtime_message_open m where m.lease_owner = w.worker_id)
    and not exists (select from provisioning_stream s where s.lease_owner = w.worker_id)
  returning w.worker_id`)

/** Deletes workers whose lease ended before `before` and whose claims were all taken back. Returns how many there were. */
export async function deleteIdleWorkers(db: Database, before: Date): Promise<number> {
  return (await deleteIdle(db, [before])).length
}
