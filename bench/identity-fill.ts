import pg from 'pg'
import { idOf, PEOPLE, REFRESH_TOKENS } from './identity-case.ts'

/** Writes users, a session for each, and refresh tokens: as the API would, which takes an Argon2id for each sign-in. */
export async function fillIdentity(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  const prefix = (kind: 'user' | 'session') => idOf(kind, 0).slice(0, -12)
  const idText = (kind: 'user' | 'session', n: string) => `('${prefix(kind)}' || lpad(to_hex(${n}), 12, '0'))::uuid`
  try {
    await client.query(
      `insert into "user" (document_id, email, email_verified_at, is_actived, created_at, updated_at)
       select ${idText('user', 'n')}, 'bench-' || n || '@example.com', now(), true, now(), now()
       from generate_series(0, $1::int - 1) n`,
      [PEOPLE],
    )
    await client.query(
      `insert into session (document_id, "user", expires_at, auth_time, last_used_at, created_at, updated_at)
       select ${idText('session', 'n')}, ${idText('user', 'n')}, now() + interval '90 days', now(), now(), now(), now()
       from generate_series(0, $1::int - 1) n`,
      [PEOPLE],
    )
    await client.query(
      `insert into session_refresh (token_hash, session, expires_at, created_at)
       select sha256(convert_to('sbr_' || lpad(n::text, 43, '0'), 'UTF8')), ${idText('session', 'n % $2::int')},
         now() + interval '30 days', now()
       from generate_series(0, $1::int - 1) n`,
      [REFRESH_TOKENS, PEOPLE],
    )
  } finally {
    await client.end()
  }
}
