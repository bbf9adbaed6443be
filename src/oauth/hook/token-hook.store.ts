import type { AccountId, UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import type { TokenSubject } from './token-hook.ts'

const OF_SUBJECT = `select u.document_id, u.is_actived and u.deleted_at is null as is_active,
  first_account_of(u.document_id) as account,
  api_scope_of(u.document_id, $clientId) as api_scope, is_engine_grant_revoked(u.document_id, $clientId) as is_revoked,
  u.apps_ended_at
  from "user" u`

interface SubjectColumns {
  document_id: UserId
  is_active: boolean
  account: AccountId | null
  api_scope: string | null
  is_revoked: boolean
  apps_ended_at: Date | null
}

const select = statement<
  SubjectColumns,
  { userId: UserId | null; engineSubject: string | null; clientId: string | null }
>(`${OF_SUBJECT} where u.document_id = coalesce($userId, person_of_subject($engineSubject))`)

/** The subject of a token, and what it granted the app of the scopes that a managed engine does not know. */
export interface FoundSubject {
  subject: TokenSubject
  apiScope: string | null
  /** Whether it took back what it allowed the app. */
  isRevoked: boolean
  /** When the sessions of its apps were ended last. */
  appsEndedAt: Date | null
}

/** A user, by its id or by the subject at a managed engine, as the subject of a token. Undefined for an unknown one. */
export async function findTokenSubject(
  db: Database,
  by: ({ userId: UserId } | { engineSubject: string }) & { clientId: string | null },
): Promise<FoundSubject | undefined> {
  const [row] = await select(db, { userId: null, engineSubject: null, ...by })
  if (!row) return undefined
  const subject = { userId: row.document_id, isActive: row.is_active, accountId: row.account }
  return { subject, apiScope: row.api_scope, isRevoked: row.is_revoked, appsEndedAt: row.apps_ended_at }
}
