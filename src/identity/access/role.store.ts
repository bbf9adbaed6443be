import { sql } from 'kysely'
import type { Id, UserId } from '../../base/id.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import { columnsOf, wireOf } from '../../http/shape/wire-row.ts'
import { writeAtEnd } from '../../postgres/statement/closing.ts'
import { asPart, columnChange } from '../../postgres/statement/column-change.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import {
  aheadStatement,
  changeStatement,
  closingStatement,
  rowStatement,
  soleRowStatement,
  statement,
  testStatement,
} from '../../postgres/statement/statement.ts'
import { RoleRow } from './role.schema.ts'

export type RoleId = Id<'role'>

/** A role, without its patterns. */
const role = defineRecord(
  'role',
  columnsOf(RoleRow).filter((column) => column !== 'permissions'),
)
export type RoleRecord = RecordOf<typeof role>

/** A role with its patterns. */
export interface RoleWithPatterns extends RoleRecord {
  patterns: string[]
}

const toStoredRow = wireOf(role, RoleRow)

/** Maps a role for the wire. */
export function toRoleRow(found: RoleWithPatterns): Static<typeof RoleRow> {
  return { ...toStoredRow(found), permissions: found.patterns }
}

/** The patterns of a role, sorted. */
const PATTERNS = sql<string[]>`array(
  select p.pattern from role_permission p where p.role = role.document_id order by p.pattern)`

/** All roles with their patterns, as the base of a list. */
export function selectRoles(db: Database) {
  return selectRecord(db.selectFrom('role'), role).select(PATTERNS.as('patterns'))
}

/** The role with this id. */
export function findRole(db: Database, id: string): Promise<RoleWithPatterns | undefined> {
  return selectRoles(db).where('document_id', '=', id).executeTakeFirst()
}

/** The role with this id, locked against changes and assignments. Its patterns are read behind the lock. */
export const lockRole = rowStatement<RoleWithPatterns, { id: string }>(`
  with r as (select * from role where document_id = $id for no key update)
  select ${role.members('r')}, patterns_of(r.document_id) as patterns from r`)

/** A locked role whose holders may lose, or get, what a role beyond accounts gives. */
export interface RoleOfHolders extends RoleWithPatterns {
  /** Holders whose ways in an account closes but for a role beyond accounts, as before the lock; locked. */
  lockedHolders: UserId[]
  /** The same behind the lock. */
  closedHolders: UserId[]
}

/**
 * The role with this id and its holders, locked as by \`lockRole\`. For a change that takes what it gives beyond
 * accounts. Each part uses the one before, so that the locks are taken in this order: the users, the role.
 */
export const lockRoleOfHolders = rowStatement<RoleOfHolders, { id: string }>(`
  with h as (
    select lock_closed_holders($id) as ids
  ), r as (
    select x.* from role x, (select ids from h) locked where x.document_id = $id for no key update of x
  )
  select ${role.members('r')}, patterns_of(r.document_id) as patterns, (select ids from h) as "lockedHolders",
    closed_holders_of(r.document_id) as "closedHolders"
  from r`)

/** Ends what those of the locked `holders` opened who keep no other role beyond their accounts than this one. */
export const endClosedHolders = aheadStatement<{ holders: readonly UserId[]; role: RoleId; now: Date }>(
  'select from end_closed_holders($holders, $role, $now)',
)

/** Whether a connection knows some user with this role. */
export const hasConnectedHolder = soleRowStatement<{ isConnected: boolean }, { id: RoleId }, boolean>(
  'select has_connected_holder($id) as "isConnected"',
  ({ isConnected }) => isConnected,
)

/** A role to assign to a user. */
export type GivenRole = Pick<RoleWithPatterns, 'id' | 'name' | 'isSystem' | 'isAccountScoped' | 'patterns'>

/** A `GivenRole` of the locked row `r`, as SQL. */
export const GIVEN_ROLE = `json_build_object('id', r.document_id, 'name', r.name, 'isSystem', r.is_system,
  'isAccountScoped', r.is_account_scoped, 'patterns', patterns_of(r.document_id))`

/**
 * The role with this name and those with these ids, by name, locked against changes and deletion until the transaction
 * ends; missing ones are omitted. They are locked in the order of their ids, which prevents deadlocks.
 */
export const lockGivenRoles = statement<{ role: GivenRole }, { name: string; ids: readonly string[] }, GivenRole>(
  `with r as (select * from role where name = $name or document_id = any($ids) order by document_id for share)
  select ${GIVEN_ROLE} as role from r order by r.name`,
  ({ role }) => role,
)

/** The role with this name. */
export function findRoleByName(db: Database, name: string): Promise<RoleRecord | undefined> {
  return selectRecord(db.selectFrom('role'), role).where('name', '=', name).executeTakeFirst()
}

/** A new role. */
export type NewRole = Omit<RoleWithPatterns, 'createdAt' | 'updatedAt'> & { now: Date }

/** Inserts a role with its patterns. Violates `role_name_key` when the name is taken. */
export const insertRole = soleRowStatement<RoleRecord, NewRole>(`
  with made as (
    insert into role (document_id, name, description, is_system, is_account_scoped, requires_second_factor, created_at,
      updated_at)
    values ($id, $name, $description, $isSystem, $isAccountScoped, $requiresSecondFactor, $now, $now)
    returning ${role.select()}
  ), given as (
    insert into role_permission (role, pattern)
    select made.document_id, x.pattern from made, unnest($patterns::text[]) as x (pattern)
  )
  select ${role.members()} from made`)

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

/** Changes of a role. Omitted members stay. */
export interface RoleChange {
  name?: string
  description?: string | null
  isAccountScoped?: boolean
  requiresSecondFactor?: boolean
  patterns?: readonly string[]
  now: Date
}

const changeColumns = columnChange<Omit<RoleChange, 'patterns'>>('role', {
  name: 'name = $name',
  description: 'description = $description',
  // Written only when it differs: a trigger reports every write.
  isAccountScoped: 'is_account_scoped = $isAccountScoped',
  requiresSecondFactor: 'requires_second_factor = $requiresSecondFactor',
  now: 'updated_at = $now',
})

/** The parts of a statement that replaces the patterns of a role. */
const PATTERN_CHANGE = `
  taken_patterns as (delete from role_permission where role = $role and not pattern = any($patterns::text[])),
  given_patterns as (
    insert into role_permission (role, pattern) select $role::uuid, x.pattern from unnest($patterns::text[]) as x (pattern)
    on conflict do nothing)`

type PatternChange = { role: RoleId; patterns: readonly string[] }
const changePatterns = closingStatement<PatternChange>(PATTERN_CHANGE)
/** Replaces the patterns of a role. */
export const replacePatterns = changeStatement<PatternChange>(`with ${PATTERN_CHANGE} select`)

/** Changes the columns of `change`; `patterns` replaces all. `explain` finds the problem of a name that is taken. */
export async function updateRole(
  db: Database,
  id: RoleId,
  change: RoleChange,
  explain: (error: unknown) => unknown,
): Promise<void> {
  const { patterns, ...columns } = change
  await writeAtEnd(db, { parts: asPart('changed_role', changeColumns(id, columns)), invalidations: '*', explain })
  if (patterns) await changePatterns(db, { role: id, patterns })
}

/** Deletes a role and its assignments, with the last statement of the transaction. */
export const deleteRoleRow = closingStatement<{ id: RoleId }>(
  'removed_role as (delete from role where document_id = $id)',
  () => '*',
)

/** Replaces the roles of a user, with the last statement of the transaction. */
export const assignRoles = closingStatement<{ userId: UserId; roles: readonly RoleId[]; now: Date }>(
  `taken_roles as (delete from user_role where "user" = $userId and not role = any($roles)),
  given_roles as (
    insert into user_role ("user", role, created_at)
    select $userId, x.role, $now from unnest($roles::uuid[]) as x (role)
    on conflict do nothing)`,
  ({ userId }) => `u:${userId}`,
)

/** Whether some active user, not deleted, has the role with this name. */
export const hasActiveHolder = testStatement<{ name: string }>(`
  select from role r
  join user_role ur on ur.role = r.document_id join "user" u on u.document_id = ur."user"
  where r.name = $name and u.is_actived and u.deleted_at is null limit 1`)
