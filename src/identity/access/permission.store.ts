import type { Listing } from '../../http/listing/listing.ts'
import { readPage } from '../../http/listing/page.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { PermissionRow } from './role.schema.ts'

/** The fields of the list of permissions. */
export const PERMISSION_FIELDS = {
  name: { type: 'text', sortable: true, like: 'few-rows' },
  created_at: { type: 'timestamp', sortable: true },
} as const

/** A permission has no id: its name breaks ties. */
const SOURCE = { idColumn: 'name' }

/** One page of the permissions. */
export function readPermissionPage(db: Database, listing: Listing) {
  return readPage(db, db.selectFrom('permission').select(['name', 'description', 'created_at', 'updated_at']), {
    listing,
    fields: PERMISSION_FIELDS,
    source: SOURCE,
    toRow: (row): Static<typeof PermissionRow> => ({
      name: row.name,
      description: row.description,
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString(),
    }),
  })
}

/** Synchronizes the table `permission` with the routes of this program. Idempotent; safe in concurrent processes. */
export async function syncPermissions(
  db: Database,
  input: { permissions: readonly { name: string; description: string | null }[]; now: Date },
): Promise<void> {
  const { permissions, now } = input
  if (permissions.length === 0) return
  await db
    .insertInto('permission')
    .values(permissions.map((permission) => ({ ...permission, created_at: now, updated_at: now })))
    .onConflict((conflict) =>
      conflict
        .column('name')
        .doUpdateSet((eb) => ({ description: eb.ref('excluded.description'), updated_at: now }))
        .whereRef('permission.description', 'is distinct from', 'excluded.description'),
    )
    .execute()
  await db
    .deleteFrom('permission')
    .where(
      'name',
      'not in',
      permissions.map(({ name }) => name),
    )
    .execute()
}
