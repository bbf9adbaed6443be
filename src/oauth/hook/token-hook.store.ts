import { rowStatement } from '../../postgres/statement/statement.ts'
import type { TokenSubject } from './token-hook.ts'

/** The subject of a token, and the API scopes that it granted the app, which a managed engine does not know. */
export interface FoundSubject {
  subject: TokenSubject
  apiScope: string | null
  /** Whether it revoked the grant of the app. */
  isRevoked: boolean
  /** Whether an account signs the user in by its connection alone; false without a client. */
  isClosed: boolean
  /** Time of the last revocation of its apps' sessions. */
  appsEndedAt: Date | null
}

/** The user of a subject at a managed engine, as the subject of a token. Undefined for an unknown one. */
export const findTokenSubject = rowStatement<FoundSubject, { engineSubject: string; clientId: string | null }>(`
  select json_build_object('userId', u.document_id, 'isActive', u.is_actived and u.deleted_at is null,
      'accountId', first_account_of(u.document_id)) as subject,
    api_scope_of(u.document_id, $clientId) as "apiScope",
    is_engine_grant_revoked(u.document_id, $clientId) as "isRevoked",
    $clientId::text is not null and required_connection_of(u.document_id, u.email) is not null as "isClosed", u.apps_ended_at as "appsEndedAt"
  from "user" u where u.document_id = user_of_subject($engineSubject)`)
