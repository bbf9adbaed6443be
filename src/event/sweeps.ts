import { type Sweep, sweepBatches, sweepOld } from '../postgres/sweep.ts'
import { deleteExpiredPublishKeys } from './publish/publish.store.ts'
import { PUBLISH_KEY_KEPT_MS } from './publish/publish.ts'
import { clearOldPublicationEntries, deleteOldAuditEntries } from './recording/audit.store.ts'
import { deleteOldEvents } from './recording/event-removal.store.ts'

/** Deletes events without a ledger row, keys of publishers, and audit entries, also those in the rows of events. */
export const eventSweeps: readonly Sweep[] = [
  sweepBatches('events', ({ db, ledgerBefore: before, auditBefore, limit }) =>
    deleteOldEvents(db, { before, auditBefore, limit }),
  ),
  sweepOld('publishKeys', PUBLISH_KEY_KEPT_MS, deleteExpiredPublishKeys),
  sweepBatches('auditEntries', async ({ db, auditBefore, limit }) => {
    const deleted = await deleteOldAuditEntries(db, auditBefore, limit)
    return deleted + (await clearOldPublicationEntries(db, auditBefore, limit))
  }),
]
