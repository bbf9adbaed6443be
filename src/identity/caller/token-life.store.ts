import type { Database } from '../../postgres/statement/database.ts'
import { isAfter, statement } from '../../postgres/statement/statement.ts'
import { SESSION_JWT_SECONDS } from '../session/token/session-token.ts'

/** Expiry of a session or an API key, by its `TokenName`; null for a key that does not expire. */
interface TokenLife {
  token: string
  endsAt: Date | null
}

/**
 * A session is valid as long as its latest JWT: of its opening, of its last refresh, or of a step-up. Each row is
 * looked up by its id.
 */
const selectLives = statement<TokenLife, { sessions: readonly string[]; keys: readonly string[]; now: Date }>(`
  select 's:' || s.document_id as token, least(s.expires_at, greatest(s.created_at, s.auth_time, (
      select max(t.created_at) from session_refresh t where t.session = s.document_id
    )) + interval '${SESSION_JWT_SECONDS} seconds') as "endsAt"
  from unnest($sessions::uuid[]) x (id) cross join lateral (select * from session where document_id = x.id offset 0) s
  where s.revoked_at is null and ${isAfter('s.expires_at', '$now')}
  union all
  select 'k:' || k.document_id, k.expires_at
  from unnest($keys::uuid[]) x (id) cross join lateral (select * from api_key where document_id = x.id offset 0) k
  where k.revoked_at is null and (k.expires_at is null or ${isAfter('k.expires_at', '$now')})`)

/** Expiries of the valid ones of these sessions and API keys. */
export async function findTokenLives(
  db: Database,
  { sessions, keys, now }: { sessions: readonly string[]; keys: readonly string[]; now: Date },
): Promise<TokenLife[]> {
  return selectLives(db, { sessions, keys, now })
}
