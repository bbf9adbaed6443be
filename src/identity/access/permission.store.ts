import type { Selectable } from 'kysely'
import { buildWholeList } from '../../http/listing/page.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { DB } from '../../postgres/statement/tables.generated.ts'
import type { PermissionRow } from './role.schema.ts'

/** The fields of the list of permissions. */
export const PERMISSION_FIELDS = {
  name: { type: 'text', sortable: true, like: 'few-rows' },
  created_at: { type: 'timestamp', sortable: true },
} as const

/** The list of permissions. A permission has no id: its name breaks ties. */
export function listPermissions(db: Database) {
  const query = db.selectFrom('permission').select(['name', 'description', 'created_at', 'updated_at'])
  return buildWholeList(query, { idColumn: 'name' })
}

/** Maps a permission for the wire. */
export function toPermissionRow(row: Selectable<DB['permission']>): Static<typeof PermissionRow> {
  const { name, description, created_at, updated_at } = row
  return { name, description, created_at: created_at.toISOString(), updated_at: updated_at.toISOString() }
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
