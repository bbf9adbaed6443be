import type { Database } from '../../../postgres/statement/database.ts'
import { isNull, statement } from '../../../postgres/statement/statement.ts'
import type { BatchRow } from './request-state.ts'

/** Rows that one request consumes and writes. */
export interface StateBatch {
  /** The code or token that is spent, with the encrypted answer of a refresh. */
  spent: { model: string; idHash: Buffer; consumedBy: Buffer | null; answer: string | null } | undefined
  rows: readonly BatchRow[]
  /** The session of the browser that codes and families are written for; null where no browser asks. */
  browser: string | null
  now: Date
}

/**
 * Nothing is written when the code or token is already spent. A row of a revoked family is not written; nor is a new
 * family with a revoked grant, or of a browser without a valid session. A concurrent revocation waits for this
 * statement, and then deletes its rows. The order of locks is that of revocations: grant, session, family, code or
 * token. The use of the grant is recorded at most once an hour.
 */
const writeBatch = statement<
  { is_spent: boolean },
  {
    /** Rows as JSON. */
    rows: string
    model: string | null
    idHash: Buffer | null
    consumedBy: Buffer | null
    answer: string | null
    tokenFamilyHash: Buffer | null
    /** The grant of a new family. */
    consent: string | null
    browser: string | null
    now: Date
  }
>(`
  with base as materialized (
    select 1 from oauth_grant where document_id = $consent::uuid and ${isNull('revoked_at')} for share
  ), browser as materialized (
    select 1 from session
    where document_id = $browser::uuid and ${isNull('revoked_at')} and (select count(*) from base) >= 0 for share
  ), spent as (
    update oauth_state set consumed_at = $now, consumed_by = $consumedBy, answer = $answer
    where model = $model::text and id_hash = $idHash::bytea and consumed_at is null and (
      select count(*) from (
        select 1 from oauth_state where model = 'Grant' and id_hash = $tokenFamilyHash::bytea
          and (select count(*) from browser) >= 0 for key share
      ) held
    ) >= 0
    returning 1
  ), family as materialized (
    select 1 from oauth_state where model = 'Grant' and id_hash = $tokenFamilyHash::bytea
      and ($browser::uuid is null or exists (select from browser)) for key share
  ), written as (
    insert into oauth_state (model, id_hash, payload, grant_id, consent, uid, user_code_hash, expires_at)
    select r.model, decode(r.id_hash, 'hex'), r.payload, r.grant_id, r.consent, r.uid, decode(r.user_code, 'hex'),
      r.expires_at
    from jsonb_to_recordset($rows::jsonb) as r(
      model text, id_hash text, payload jsonb, grant_id text, consent uuid, uid text, user_code text,
      expires_at timestamptz, in_family boolean)
    where ($model::text is null or exists (select from spent))
      and (not r.in_family or case when $consent::uuid is null then exists (select from family)
        else exists (select from base) and ($browser::uuid is null or exists (select from browser)) end)
    on conflict (model, id_hash) do update set payload = excluded.payload, grant_id = excluded.grant_id,
      consent = excluded.consent, uid = excluded.uid,
      user_code_hash = coalesce(excluded.user_code_hash, oauth_state.user_code_hash), expires_at = excluded.expires_at
    returning consent, model
  ), used as (
    insert into oauth_grant_use as u (grant_id, client, used_at)
    select w.consent, g.client, $now::timestamptz
    from (select distinct consent from written where consent is not null and model in ('AccessToken', 'RefreshToken')) w
    cross join lateral (select client from oauth_grant where document_id = w.consent offset 0) g
    on conflict (grant_id) do update set used_at = excluded.used_at
    where u.used_at < excluded.used_at - interval '1 hour'
  )
  select exists (select from spent) as is_spent`)

const UNSPENT = { model: null, idHash: null, consumedBy: null, answer: null }

/** Spends a code or token and writes rows of one family. False when spent: of calls at once exactly one gets true. */
export async function writeStateBatch(db: Database, { spent, rows, browser, now }: StateBatch): Promise<boolean> {
  const made = rows.find(({ model }) => model === 'Grant')
  const tokenFamilyHash = rows.find((row) => row.tokenFamilyHash !== null)?.tokenFamilyHash ?? null
  const list = rows.map((row) => ({
    model: row.model,
    id_hash: row.idHash.toString('hex'),
    payload: row.payload,
    grant_id: row.grantId,
    consent: row.consent,
    uid: row.uid,
    user_code: row.userCodeHash?.toString('hex') ?? null,
    expires_at: row.expiresAt,
    in_family: row === made ? row.consent !== null : row.tokenFamilyHash !== null && made?.consent !== null,
  }))
  const [row] = await writeBatch(db, {
    rows: JSON.stringify(list),
    ...(spent ?? UNSPENT),
    tokenFamilyHash,
    consent: made?.consent ?? null,
    browser,
    now,
  })
  return spent === undefined || row?.is_spent === true
}
