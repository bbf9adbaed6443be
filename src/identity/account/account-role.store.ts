import { sql } from 'kysely'
import type { AccountId } from '../../base/id.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import { columnsOf, wireOf } from '../../http/shape/wire-row.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { AccountRoleRow } from './account.schema.ts'

const role = defineRecord(
  'role',
  columnsOf(AccountRoleRow).filter((column) => column !== 'permissions' && column !== 'is_givable'),
)

/** A role that memberships of an account may have. */
export interface AccountRole extends RecordOf<typeof role> {
  patterns: string[]
  /** Whether the caller holds all of its permissions in the account. */
  isGivable: boolean
}

const toStoredRow = wireOf(role, AccountRoleRow)

/** Maps a role of an account for the wire. */
export function toAccountRoleRow(found: AccountRole): Static<typeof AccountRoleRow> {
  return { ...toStoredRow(found), permissions: found.patterns, is_givable: found.isGivable }
}

/** Whether some of the held patterns covers the pattern `p`, as `coversPattern` decides it. */
const isCovered = (held: readonly string[]) => sql`(p.pattern = any(${held}::text[])
  or split_part(p.pattern, ':', 1) || ':*' = any(${held}::text[]) or '*:*' = any(${held}::text[]))`

/**
 * The account-scoped roles of which every pattern is covered by each of `holdings`, and those that a member of the account
 * has, as the base of a list; not the one of the name `without`. Empty for an account that does not exist.
 */
export function selectAccountRoles(
  db: Database,
  { account, holdings, without }: { account: AccountId; holdings: readonly (readonly string[])[]; without: string },
) {
  const covered = sql.join(holdings.map(isCovered), sql` and `)
  const isGivable = sql<boolean>`not exists (
    select from role_permission p where p.role = role.document_id and not (${covered}))`
  const isHeld = sql<boolean>`role.document_id = any(array(
    select x.role from account_member m join account_member_role x on x.member = m.document_id
    where m.account = ${account}))`
  return selectRecord(db.selectFrom('role'), role, 'role')
    .select([
      sql<
        string[]
      >`array(select p.pattern from role_permission p where p.role = role.document_id order by p.pattern)`.as(
        'patterns',
      ),
      isGivable.as('isGivable'),
    ])
    .where(sql<boolean>`(select a.deleted_at is null from account a where a.document_id = ${account})`)
    .where('role.is_account_scoped', '=', true)
    .where('role.name', '<>', without)
    .where((eb) => eb.or([isGivable, isHeld]))
}
