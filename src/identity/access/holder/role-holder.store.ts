import { sql } from 'kysely'
import { type BuildParts, buildPart } from '../../../http/listing/page.ts'
import type { Database } from '../../../postgres/statement/database.ts'

/** A user who has a role, by itself or in an account. */
export interface RoleHolderColumns {
  document_id: string
  user: string
  email: string
  name: string | null
  is_actived: boolean
  account: string | null
  account_name: string | null
  created_at: Date
}

/**
 * Who has a role, as the base of a list: the users, then the memberships that have it, without deleted users and accounts.
 * Each table is read by itself in the order of the list.
 */
export function listRoleHolders(db: Database, role: string): { scope: 'all'; parts: BuildParts<RoleHolderColumns> } {
  const users = db
    .selectFrom((from) =>
      from.selectFrom('user_role').select(['user as document_id', 'role', 'created_at']).as('given'),
    )
    .innerJoin('user as u', 'u.document_id', 'given.document_id')
    .select(['given.document_id', 'u.document_id as user', 'u.email', 'u.name', 'u.is_actived', 'given.created_at'])
    .select([sql<string | null>`null::uuid`.as('account'), sql<string | null>`null::text`.as('account_name')])
    .where('given.role', '=', role)
    .where('u.deleted_at', 'is', null)
  const members = db
    .selectFrom((from) =>
      from.selectFrom('account_member_role').select(['member as document_id', 'role', 'created_at']).as('given'),
    )
    .innerJoin('account_member as m', 'm.document_id', 'given.document_id')
    .innerJoin('user as u', 'u.document_id', 'm.user')
    .innerJoin('account as a', 'a.document_id', 'm.account')
    .select(['given.document_id', 'u.document_id as user', 'u.email', 'u.name', 'u.is_actived', 'given.created_at'])
    .select(['a.document_id as account', 'a.name as account_name'])
    .where('given.role', '=', role)
    .where('u.deleted_at', 'is', null)
    .where('a.deleted_at', 'is', null)
  return {
    scope: 'all',
    parts: () => [
      buildPart(users.$castTo<RoleHolderColumns>(), { table: 'given' }),
      buildPart(members.$castTo<RoleHolderColumns>(), { table: 'given' }),
    ],
  }
}
