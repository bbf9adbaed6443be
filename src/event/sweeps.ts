import { sweepAround, sweepOwn } from '../postgres/ledger-sweep.ts'
import { type Sweep, sweepBatches, sweepOld } from '../postgres/sweep.ts'
import { deleteExpiredPublishKeys } from './publish/publish.store.ts'
import { PUBLISH_KEY_KEPT_MS } from './publish/publish.ts'
import { clearOldPublicationEntries, deleteOldAuditEntries } from './recording/audit.store.ts'
import { deleteOldEvents, deleteOwnEvents, deletePassedEvents } from './recording/event-removal.store.ts'

/** Deletes events without a ledger row, keys of publishers, and audit entries, also those in the rows of events. */
export const eventSweeps: readonly Sweep[] = [
  sweepAround(
    ['events'],
    async ({ db, ledgerBefore: before, auditBefore, limit }) => [
      await deleteOldEvents(db, { before, auditBefore, limit }),
    ],
    ({ db, ledgerBefore: before, auditBefore, limit }, { after, longer }) =>
      deletePassedEvents(db, { after: after.at, afterId: after.id, before, longer, auditBefore, limit }),
  ),
  sweepOwn(['events'], async ({ db, auditBefore, limit }, own) => [
    await deleteOwnEvents(db, { own, auditBefore, limit }),
  ]),
  sweepOld('publishKeys', PUBLISH_KEY_KEPT_MS, deleteExpiredPublishKeys),
  sweepBatches('auditEntries', async ({ db, auditBefore, limit }) => {
    const deleted = await deleteOldAuditEntries(db, auditBefore, limit)
    return deleted + (await clearOldPublicationEntries(db, { before: auditBefore, limit }))
  }),
]
