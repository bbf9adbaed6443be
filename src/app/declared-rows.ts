import { syncPermissions } from '../access/permission.store.ts'
import { ensureSystemRoles } from '../access/system-roles.ts'
import { buildCatalogue } from '../catalogue/catalogue.ts'
import { syncCatalogue } from '../catalogue/sync.ts'
import type { IdMaker } from '../id.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { listPermissions, ROUTE_TREE } from './route-tree.ts'

/**
 * Writes what the route declarations say: the catalogue, the permissions and the system roles, in one transaction
 * (docs/contract/events.md#catalogue-sync). Idempotent; safe in concurrent processes.
 */
export async function writeDeclaredRows(db: Database, { ids, now }: { ids: IdMaker; now: Date }): Promise<void> {
  await inTransaction(db, async (tx) => {
    await syncCatalogue({ ids, catalogue: buildCatalogue(ROUTE_TREE) }, tx, now)
    await syncPermissions(tx, { permissions: listPermissions(ROUTE_TREE), now })
    await ensureSystemRoles(tx, { ids, now })
  })
}
