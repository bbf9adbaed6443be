import { sql } from 'kysely'
import { type BuildParts, buildPart } from '../../../http/listing/page.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../../postgres/statement/record.ts'

export const holder = defineRecord('user', ['email', 'name', 'is_actived'])

/** A user who has a role, by itself or in an account. */
export interface RoleHolder extends RecordOf<typeof holder> {
  /** The user, or its membership where that has the role. */
  id: string
  userId: string
  account: string | null
  accountName: string | null
  /** Time of the assignment. */
  createdAt: Date
}

/** The holders of a role, as the base of a list: each table is read separately, in the order of the list. */
export function listRoleHolders(db: Database, role: string): { scope: 'all'; parts: BuildParts<RoleHolder> } {
  const users = db
    .selectFrom((from) =>
      from.selectFrom('user_role').select(['user as document_id', 'role', 'created_at']).as('given'),
    )
    .innerJoin('user as u', 'u.document_id', 'given.document_id')
    .select(['given.document_id as id', 'u.document_id as userId', 'given.created_at as createdAt'])
    .select([sql<string | null>`null::uuid`.as('account'), sql<string | null>`null::text`.as('accountName')])
    .where('given.role', '=', role)
    .where('u.deleted_at', 'is', null)
  const members = db
    .selectFrom((from) =>
      from.selectFrom('account_member_role').select(['member as document_id', 'role', 'created_at']).as('given'),
    )
    .innerJoin('account_member as m', 'm.document_id', 'given.document_id')
    .innerJoin('user as u', 'u.document_id', 'm.user')
    .innerJoin('account as a', 'a.document_id', 'm.account')
    .select(['given.document_id as id', 'u.document_id as userId', 'given.created_at as createdAt'])
    .select(['a.document_id as account', 'a.name as accountName'])
    .where('given.role', '=', role)
    .where('u.deleted_at', 'is', null)
    .where('a.deleted_at', 'is', null)
  return {
    scope: 'all',
    parts: () => [
      buildPart(selectRecord(users, holder, 'u').$castTo<RoleHolder>(), { table: 'given' }),
      buildPart(selectRecord(members, holder, 'u').$castTo<RoleHolder>(), { table: 'given' }),
    ],
  }
}
