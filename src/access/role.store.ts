import { sql } from 'kysely'
import type { Id, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { aheadStatement } from '../postgres/statement.ts'

export type RoleId = Id<'role'>

/** A row of the `role` table, without its patterns. */
export interface RoleRecord {
  id: RoleId
  name: string
  description: string | null
  /** Created and maintained by the service. */
  isSystem: boolean
  /** Whether its permissions hold in the accounts of the user only (docs/contract/identity.md#system-roles, `member`). */
  isAccountScoped: boolean
  createdAt: Date
  updatedAt: Date
}

/** A role with its patterns. */
export interface RoleWithPatterns extends RoleRecord {
  patterns: string[]
}

interface RoleColumns {
  document_id: string
  name: string
  description: string | null
  is_system: boolean
  is_account_scoped: boolean
  created_at: Date
  updated_at: Date
}

const COLUMNS = [
  'document_id',
  'name',
  'description',
  'is_system',
  'is_account_scoped',
  'created_at',
  'updated_at',
] as const

/** The columns above, as SQL. */
const RETURNED = sql.raw(COLUMNS.join(', '))

/** The patterns of a role, sorted. */
const PATTERNS = sql<string[]>`array(
  select p.pattern from role_permission p where p.role = role.document_id order by p.pattern)`

function toRoleRecord(row: RoleColumns): RoleRecord {
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

/** Maps a row of the `role` table with its patterns. */
export function toRoleWithPatterns(row: RoleColumns & { patterns: string[] }): RoleWithPatterns {
  return { ...toRoleRecord(row), patterns: row.patterns }
}

/** All roles with their patterns, as the base of a list. */
export function selectRoles(db: Database) {
  return db.selectFrom('role').select([...COLUMNS, PATTERNS.as('patterns')])
}

/**
 * Row locks on roles until the transaction ends: `change` blocks other changes and assignments, `give` blocks changes and
 * deletions.
 */
type RoleLock = 'change' | 'give'

const LOCK = 'select from role where document_id = any($1) order by document_id'
const LOCKS = { change: aheadStatement(`${LOCK} for no key update`), give: aheadStatement(`${LOCK} for share`) }

/**
 * The roles with these ids; missing ones are left out. Locks them in the order of their ids, then reads them, because the
 * patterns of a role change under its lock.
 */
export async function findRoles(
  db: Database,
  ids: readonly string[],
  options: { lock?: RoleLock } = {},
): Promise<RoleWithPatterns[]> {
  if (ids.length === 0) return []
  if (options.lock) await LOCKS[options.lock](db, [ids])
  const rows = await selectRoles(db)
    .where((eb) => eb('document_id', '=', eb.fn.any(eb.val([...ids]))))
    .orderBy('document_id')
    .execute()
  return rows.map(toRoleWithPatterns)
}

/** The role with this name. */
export async function findRoleByName(db: Database, name: string): Promise<RoleRecord | undefined> {
  const row = await db.selectFrom('role').select(COLUMNS).where('name', '=', name).executeTakeFirst()
  return row && toRoleRecord(row)
}

/** Inserts a role with its patterns. Violates `role_name_key` when the name is taken. */
export async function insertRole(
  db: Database,
  row: Omit<RoleWithPatterns, 'createdAt' | 'updatedAt'> & { now: Date },
): Promise<RoleRecord> {
  const { id, name, description, isSystem, isAccountScoped, patterns, now } = row
  const { rows } = await sql<RoleColumns>`
    with made as (
      insert into role (${RETURNED})
      values (${id}, ${name}, ${description}, ${isSystem}, ${isAccountScoped}, ${now}, ${now})
      returning ${RETURNED}
    ), given as (
      insert into role_permission (role, pattern)
      select made.document_id, x.pattern from made, unnest(${patterns}::text[]) as x (pattern)
    )
    select ${RETURNED} from made`.execute(db)
  return toRoleRecord(rows[0] as RoleColumns)
}

/** Upserts the system role of this name. Writes nothing when the row is up to date. */
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

/**
 * Changes the columns of `change`, in one statement; `patterns` replaces all patterns. Violates `role_name_key` when the
 * name is taken.
 */
export async function updateRole(
  db: Database,
  id: RoleId,
  change: {
    name?: string
    description?: string | null
    isAccountScoped?: boolean
    patterns?: readonly string[]
    now: Date
  },
): Promise<RoleRecord> {
  const { name, description, isAccountScoped, patterns, now } = change
  const columns = [
    sql`updated_at = ${now}`,
    ...(name === undefined ? [] : [sql`name = ${name}`]),
    ...(description === undefined ? [] : [sql`description = ${description}`]),
    // Written only when it differs: a trigger sends a note for every write.
    ...(isAccountScoped === undefined ? [] : [sql`is_account_scoped = ${isAccountScoped}`]),
  ]
  const { rows } = await sql<RoleColumns>`
    with changed as (update role set ${sql.join(columns)} where document_id = ${id} returning ${RETURNED})
    ${patterns === undefined ? sql`` : sql`, ${buildPatternChange(id, patterns)}`}
    select ${RETURNED} from changed`.execute(db)
  return toRoleRecord(rows[0] as RoleColumns)
}

/** The parts of a statement that replace the patterns of a role. */
function buildPatternChange(role: RoleId, patterns: readonly string[]) {
  return sql`
    taken as (delete from role_permission where role = ${role} and not pattern = any(${patterns}::text[])),
    given as (
      insert into role_permission (role, pattern) select ${role}, x.pattern from unnest(${patterns}::text[]) as x (pattern)
      on conflict do nothing)`
}

/** Replaces the patterns of a role. */
export async function replacePatterns(db: Database, role: RoleId, patterns: readonly string[]): Promise<void> {
  await sql`with ${buildPatternChange(role, patterns)} select`.execute(db)
}

const remove = aheadStatement('delete from role where document_id = $1')

/** Deletes a role and its assignments. Sent with the next statement of the transaction. */
export async function deleteRoleRow(db: Database, id: RoleId): Promise<void> {
  await remove(db, [id])
}

/** Replaces the roles of a user. */
export async function replaceUserRoles(
  db: Database,
  input: { userId: UserId; roles: readonly RoleId[]; now: Date },
): Promise<void> {
  const { userId, roles, now } = input
  await sql`
    with taken as (delete from user_role where "user" = ${userId} and not role = any(${roles}::uuid[]))
    insert into user_role ("user", role, created_at)
    select ${userId}, x.role, ${now} from unnest(${roles}::uuid[]) as x (role)
    on conflict do nothing`.execute(db)
}

const lockByName = aheadStatement('select from role where name = $1 for update')

/**
 * Up to `limit` active users, not deleted, who have the role with this name. With `lock`, the role is locked first until
 * the transaction ends, which serializes changes of its users.
 */
export async function findActiveHolders(
  db: Database,
  name: string,
  options: { limit: number; lock?: boolean },
): Promise<UserId[]> {
  if (options.lock) await lockByName(db, [name])
  const rows = await db
    .selectFrom('role')
    .innerJoin('user_role', 'user_role.role', 'role.document_id')
    .innerJoin('user', 'user.document_id', 'user_role.user')
    .select('user.document_id')
    .where('role.name', '=', name)
    .where('user.is_actived', '=', true)
    .where('user.deleted_at', 'is', null)
    .limit(options.limit)
    .execute()
  return rows.map((row) => row.document_id as UserId)
}
