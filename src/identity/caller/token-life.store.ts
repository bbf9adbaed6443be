import { isAfter, statement } from '../../postgres/statement/statement.ts'
import { SESSION_JWT_SECONDS } from '../session/token/session-token.ts'

/** Expiry of a session or an API key, by its `TokenName`; null for a key that does not expire. */
interface TokenLife {
  token: string
  endsAt: Date | null
}

interface AskedTokens {
  sessions: readonly string[]
  /** Of each session the state in its name: empty, `lacking` or `proven`. */
  sessionStates: readonly string[]
  keys: readonly string[]
  keyStates: readonly string[]
  now: Date
}

const NAMED = (prefix: string, id: string) =>
  `'${prefix}:' || ${id} || case when x.state = '' then '' else ':' || x.state end`

/**
 * Expiries of the valid ones of these sessions and API keys. A session is valid as long as its latest JWT: of its
 * opening, of its last refresh, or of a step-up. A proven one ends with its proof, and one that reached every account
 * when an account begins to lack in it. Each row is looked up by its id.
 */
export const findTokenLives = statement<TokenLife, AskedTokens>(`
  select ${NAMED('s', 's.document_id')} as token, least(s.expires_at, n.proven_until, greatest(s.created_at, s.auth_time, (
      select max(t.created_at) from session_refresh t where t.session = s.document_id
    )) + interval '${SESSION_JWT_SECONDS} seconds') as "endsAt"
  from unnest($sessions::uuid[], $sessionStates::text[]) x (id, state)
  cross join lateral (select * from session where document_id = x.id offset 0) s
  left join lateral session_narrowing(s."user", s.document_id, $now) n on x.state <> 'lacking'
  where s.revoked_at is null and ${isAfter('s.expires_at', '$now')}
    and (n.account is null or (x.state = 'proven' and n.proven_until is not null))
  union all
  select ${NAMED('k', 'k.document_id')}, k.expires_at
  from unnest($keys::uuid[], $keyStates::text[]) x (id, state)
  cross join lateral (select * from api_key where document_id = x.id offset 0) k
  left join lateral narrowing_of(k."user") n on x.state <> 'lacking' and n.account is distinct from k.account
  where k.revoked_at is null and (k.expires_at is null or ${isAfter('k.expires_at', '$now')}) and n.account is null`)
