import type { IdMaker } from '../../base/id.ts'
import { buildCatalogue } from '../../event/catalogue/catalogue.ts'
import { syncCatalogue } from '../../event/catalogue/sync.ts'
import { syncPermissions } from '../../identity/access/permission.store.ts'
import { ensureSystemRoles } from '../../identity/access/system-roles.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { listPermissions, ROUTE_TREE } from './route-tree.ts'

/** Writes catalogue, permissions and system roles (docs/contract/events.md#catalogue-sync). Safe in many processes. */
export async function writeDeclaredRows(db: Database, { ids, now }: { ids: IdMaker; now: Date }): Promise<void> {
  await inTransaction(db, async (tx) => {
    await syncCatalogue({ ids, catalogue: buildCatalogue(ROUTE_TREE) }, tx, { now, by: null })
    await syncPermissions(tx, { permissions: listPermissions(ROUTE_TREE), now })
    await ensureSystemRoles(tx, { ids, now })
  })
}
