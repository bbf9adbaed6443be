import type { Selectable } from 'kysely'
import type { Id, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { Role } from '../postgres/tables.generated.ts'

export type RoleId = Id<'role'>

/** A row of the `role` table, without its patterns. */
export interface RoleRecord {
  id: RoleId
  name: string
  description: string | null
  /** Made and kept by the service itself. */
  isSystem: boolean
  /** Whether its permissions hold for the accounts of the user only (docs/contract/identity.md#system-roles, `member`). */
  isAccountScoped: boolean
  createdAt: Date
  updatedAt: Date
}

/** A role with what it holds. */
export interface RoleWithPatterns extends RoleRecord {
  patterns: string[]
}

/** Maps a row of the `role` table. */
export function toRoleRecord(row: Selectable<Role>): RoleRecord {
  return {
    id: row.document_id as RoleId,
    name: row.name,
    description: row.description,
    isSystem: row.is_system,
    isAccountScoped: row.is_account_scoped,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** All roles, as the base of a list. */
export function selectRoles(db: Database) {
  return db.selectFrom('role')
}

/** Adds to each role what it holds, its patterns in order. */
export async function withPatterns(db: Database, roles: readonly RoleRecord[]): Promise<RoleWithPatterns[]> {
  if (roles.length === 0) return []
  const rows = await db
    .selectFrom('role_permission')
    .selectAll()
    .where(
      'role',
      'in',
      roles.map(({ id }) => id),
    )
    .orderBy('pattern')
    .execute()
  const patternsOf = Map.groupBy(rows, (row) => row.role)
  return roles.map((role) => ({ ...role, patterns: (patternsOf.get(role.id) ?? []).map((row) => row.pattern) }))
}

/**
 * How roles are locked until the transaction ends: `change` lets nobody else change or give them, `give` lets nobody
 * change or delete them.
 */
type RoleLock = 'change' | 'give'

/** The roles with these ids; those that do not exist are left out. Locked in the order of their ids. */
export async function findRoles(
  db: Database,
  ids: readonly string[],
  options: { lock?: RoleLock } = {},
): Promise<RoleWithPatterns[]> {
  if (ids.length === 0) return []
  let query = db.selectFrom('role').selectAll().where('document_id', 'in', ids).orderBy('document_id')
  if (options.lock === 'change') query = query.forNoKeyUpdate()
  if (options.lock === 'give') query = query.forShare()
  const rows = await query.execute()
  return withPatterns(db, rows.map(toRoleRecord))
}

/** The role with this name. */
export async function findRoleByName(db: Database, name: string): Promise<RoleRecord | undefined> {
  const row = await db.selectFrom('role').selectAll().where('name', '=', name).executeTakeFirst()
  return row && toRoleRecord(row)
}

/** Locks the role with this name until the transaction ends, so that two changes of who holds it follow each other. */
export async function lockRoleByName(db: Database, name: string): Promise<RoleRecord | undefined> {
  const row = await db.selectFrom('role').selectAll().where('name', '=', name).forUpdate().executeTakeFirst()
  return row && toRoleRecord(row)
}

/** Inserts a role without patterns. Breaks `role_name_key` when the name is taken. */
export async function insertRole(
  db: Database,
  row: Omit<RoleRecord, 'createdAt' | 'updatedAt'> & { now: Date },
): Promise<RoleRecord> {
  const inserted = await db
    .insertInto('role')
    .values({
      document_id: row.id,
      name: row.name,
      description: row.description,
      is_system: row.isSystem,
      is_account_scoped: row.isAccountScoped,
      created_at: row.now,
      updated_at: row.now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toRoleRecord(inserted)
}

/** Makes the system role of this name what it has to be. Changes nothing that is already so. */
export async function upsertSystemRole(
  db: Database,
  row: { id: RoleId; name: string; description: string; isAccountScoped: boolean; now: Date },
): Promise<void> {
  const wanted = { is_system: true, is_account_scoped: row.isAccountScoped, description: row.description }
  await db
    .insertInto('role')
    .values({ document_id: row.id, name: row.name, ...wanted, created_at: row.now, updated_at: row.now })
    .onConflict((conflict) =>
      conflict
        .column('name')
        .doUpdateSet({ ...wanted, updated_at: row.now })
        .where((eb) =>
          eb.or([
            eb('role.is_system', '=', false),
            eb('role.is_account_scoped', '<>', row.isAccountScoped),
            eb('role.description', 'is distinct from', row.description),
          ]),
        ),
    )
    .execute()
}

/** Changes what `change` names. Breaks `role_name_key` when the name is taken. */
export async function updateRole(
  db: Database,
  id: RoleId,
  change: { name?: string; description?: string | null; isAccountScoped?: boolean; now: Date },
): Promise<RoleRecord> {
  const updated = await db
    .updateTable('role')
    .set({
      ...(change.name !== undefined && { name: change.name }),
      ...(change.description !== undefined && { description: change.description }),
      ...(change.isAccountScoped !== undefined && { is_account_scoped: change.isAccountScoped }),
      updated_at: change.now,
    })
    .where('document_id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  return toRoleRecord(updated)
}

/** Makes `patterns` all that a role holds. */
export async function replacePatterns(db: Database, role: RoleId, patterns: readonly string[]): Promise<void> {
  let leftovers = db.deleteFrom('role_permission').where('role', '=', role)
  if (patterns.length > 0) leftovers = leftovers.where('pattern', 'not in', patterns)
  await leftovers.execute()
  if (patterns.length === 0) return
  await db
    .insertInto('role_permission')
    .values(patterns.map((pattern) => ({ role, pattern })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Deletes a role; its users lose it with the row. */
export async function deleteRoleRow(db: Database, id: RoleId): Promise<void> {
  await db.deleteFrom('role').where('document_id', '=', id).execute()
}

/** The roles of each of these users. */
export async function findRolesOfUsers(
  db: Database,
  users: readonly UserId[],
): Promise<Map<UserId, { id: RoleId; isAccountScoped: boolean }[]>> {
  if (users.length === 0) return new Map()
  const rows = await db
    .selectFrom('user_role')
    .innerJoin('role', 'role.document_id', 'user_role.role')
    .select(['user_role.user', 'role.document_id', 'role.is_account_scoped'])
    .where('user_role.user', 'in', users)
    .orderBy('role.name')
    .execute()
  const grouped = Map.groupBy(rows, (row) => row.user as UserId)
  return new Map(
    [...grouped].map(([user, held]) => [
      user,
      held.map((row) => ({ id: row.document_id as RoleId, isAccountScoped: row.is_account_scoped })),
    ]),
  )
}

/** Makes `roles` all that a user has. */
export async function replaceUserRoles(
  db: Database,
  input: { userId: UserId; roles: readonly RoleId[]; now: Date },
): Promise<void> {
  const { userId, roles, now } = input
  let leftovers = db.deleteFrom('user_role').where('user', '=', userId)
  if (roles.length > 0) leftovers = leftovers.where('role', 'not in', roles)
  await leftovers.execute()
  if (roles.length === 0) return
  await db
    .insertInto('user_role')
    .values(roles.map((role) => ({ user: userId, role, created_at: now })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** The active, living users who have a role, `limit` of them at most. */
export async function findActiveHolders(db: Database, role: RoleId, limit: number): Promise<UserId[]> {
  const rows = await db
    .selectFrom('user_role')
    .innerJoin('user', 'user.document_id', 'user_role.user')
    .select('user.document_id')
    .where('user_role.role', '=', role)
    .where('user.is_actived', '=', true)
    .where('user.deleted_at', 'is', null)
    .limit(limit)
    .execute()
  return rows.map((row) => row.document_id as UserId)
}
