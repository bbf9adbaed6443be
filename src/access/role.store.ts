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

/** What the role of a row holds, in order. */
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

/** All roles with what they hold, as the base of a list. */
export function selectRoles(db: Database) {
  return db.selectFrom('role').select([...COLUMNS, PATTERNS.as('patterns')])
}

/**
 * How roles are locked until the transaction ends: `change` lets nobody else change or give them, `give` lets nobody
 * change or delete them.
 */
type RoleLock = 'change' | 'give'

const LOCK = 'select from role where document_id = any($1) order by document_id'
const LOCKS = { change: aheadStatement(`${LOCK} for no key update`), give: aheadStatement(`${LOCK} for share`) }

/**
 * The roles with these ids; those that do not exist are left out. They are locked in the order of their ids, and read
 * after that: the patterns of a role change under its lock.
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

/** Inserts a role with what it holds. Breaks `role_name_key` when the name is taken. */
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

/**
 * Changes what `change` names, in one statement; `patterns` are all that the role holds then. Breaks `role_name_key` when
 * the name is taken.
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
    // Written only when it changes: a trigger notes every write of it.
    ...(isAccountScoped === undefined ? [] : [sql`is_account_scoped = ${isAccountScoped}`]),
  ]
  const { rows } = await sql<RoleColumns>`
    with changed as (update role set ${sql.join(columns)} where document_id = ${id} returning ${RETURNED})
    ${patterns === undefined ? sql`` : sql`, ${buildPatternChange(id, patterns)}`}
    select ${RETURNED} from changed`.execute(db)
  return toRoleRecord(rows[0] as RoleColumns)
}

/** The parts of a statement that make `patterns` all that a role holds. */
function buildPatternChange(role: RoleId, patterns: readonly string[]) {
  return sql`
    taken as (delete from role_permission where role = ${role} and not pattern = any(${patterns}::text[])),
    given as (
      insert into role_permission (role, pattern) select ${role}, x.pattern from unnest(${patterns}::text[]) as x (pattern)
      on conflict do nothing)`
}

/** Makes `patterns` all that a role holds. */
export async function replacePatterns(db: Database, role: RoleId, patterns: readonly string[]): Promise<void> {
  await sql`with ${buildPatternChange(role, patterns)} select`.execute(db)
}

const remove = aheadStatement('delete from role where document_id = $1')

/** Deletes a role; its users lose it with the row. Sent with the next statement of the transaction. */
export async function deleteRoleRow(db: Database, id: RoleId): Promise<void> {
  await remove(db, [id])
}

/** Makes `roles` all that a user has. */
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
 * The active, living users who have the role with this name, `limit` of them at most. With `lock`, the role is locked
 * before until the transaction ends, so that two changes of who holds it follow each other.
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
