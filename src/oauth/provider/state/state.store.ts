import { sweepStatement } from '../../../postgres/retention.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../../postgres/statement/record.ts'
import { isAfter, rowStatement, statement, testStatement } from '../../../postgres/statement/statement.ts'

/** Stored row of one model under one id. */
export interface StateRow {
  model: string
  idHash: Buffer
  payload: Record<string, unknown>
  grantId: string | null
  /** The row of `oauth_grant` that the authorization rests on. */
  consent: string | null
  uid: string | null
  userCodeHash: Buffer | null
  expiresAt: Date
}

/** A found row; `consumedBy` is a hash of the client that spent it. */
export const found = defineRecord('oauth_state', ['payload', 'consumed_at', 'consumed_by']).typed<{
  payload: Record<string, unknown>
}>()
export type FoundState = RecordOf<typeof found>

/** The placeholders of a row, its payload as JSON. */
type StateParams = Omit<StateRow, 'payload'> & { payload: string }

const toParams = (row: StateRow): StateParams => ({ ...row, payload: JSON.stringify(row.payload) })

const upsert = statement<object, StateParams & { tokenFamilyHash: Buffer | null }>(`
  with family as materialized (
    select 1 from oauth_state where model = 'Grant' and id_hash = $tokenFamilyHash for key share
  )
  insert into oauth_state (model, id_hash, payload, grant_id, consent, uid, user_code_hash, expires_at)
  select $model, $idHash::bytea, $payload::jsonb, $grantId, $consent::uuid, $uid, $userCodeHash::bytea,
    $expiresAt::timestamptz
  where $tokenFamilyHash::bytea is null or exists (select from family)
  on conflict (model, id_hash) do update set payload = excluded.payload, grant_id = excluded.grant_id,
    consent = excluded.consent, uid = excluded.uid,
    user_code_hash = coalesce(excluded.user_code_hash, oauth_state.user_code_hash), expires_at = excluded.expires_at`)

/**
 * Inserts or replaces a row; its spent state is kept. Nothing is written for a revoked family `tokenFamilyHash`; a
 * concurrent revocation waits for this write, and then deletes it.
 */
export async function upsertState(db: Database, row: StateRow, tokenFamilyHash: Buffer | null = null): Promise<void> {
  await upsert(db, { ...toParams(row), tokenFamilyHash })
}

const insertNew = testStatement<StateParams>(`
  insert into oauth_state (model, id_hash, payload, grant_id, consent, uid, user_code_hash, expires_at)
  values ($model, $idHash, $payload, $grantId, $consent, $uid, $userCodeHash, $expiresAt)
  on conflict do nothing`)

/** Inserts a row that must be new. False when there is one already. */
export const insertNewState = (db: Database, row: StateRow): Promise<boolean> => insertNew(db, toParams(row))

/** The row of this id that has not expired. */
export const findState = rowStatement<FoundState, { model: string; idHash: Buffer; now: Date }>(`
  select ${found.members('s')} from oauth_state s
  where s.model = $model and s.id_hash = $idHash and ${isAfter('s.expires_at', '$now')}`)

/**
 * The condition on a row `s`: its browser session is valid at `$now`, or it has none. The session is looked up by its
 * key alone, in a scalar subquery: a plan made on empty tables would otherwise read every valid session, by a partial
 * index of these.
 */
export const FOLLOWS_LIVE_BROWSER = `(
  s.payload ->> 'browserSession' is null
  or (
    select b.revoked_at is null and b.expires_at > $now from session b
    where b.document_id = (s.payload ->> 'browserSession')::uuid
  ))`

/** The unexpired row with this `uid`, while its browser session is valid. */
export const findStateByUid = rowStatement<FoundState, { model: string; uid: string; now: Date }>(`
  select ${found.members('s')} from oauth_state s
  where s.model = $model and s.uid = $uid and ${isAfter('s.expires_at', '$now')} and ${FOLLOWS_LIVE_BROWSER}`)

/** The row with this user code that has not expired. */
export const findStateByUserCode = rowStatement<FoundState, { model: string; userCodeHash: Buffer; now: Date }>(`
  select ${found.members('s')} from oauth_state s
  where s.model = $model and s.user_code_hash = $userCodeHash and ${isAfter('s.expires_at', '$now')}`)

/** Spends a row. False for a spent or deleted one: of concurrent calls exactly one gets true. */
export const consumeState = testStatement<{ model: string; idHash: Buffer; now: Date; consumedBy: Buffer | null }>(`
  update oauth_state set consumed_at = $now, consumed_by = $consumedBy
  where model = $model and id_hash = $idHash and consumed_at is null`)

/** Deletes a row. */
export const deleteState = statement<object, { model: string; idHash: Buffer }>(
  'delete from oauth_state where model = $model and id_hash = $idHash',
)

const endTokenFamily = statement<object, { grantId: string }>(
  "delete from oauth_state where model = 'Grant' and grant_id = $grantId",
)
const deleteOfTokenFamily = statement<object, { grantId: string }>('delete from oauth_state where grant_id = $grantId')
/** Deletes the rows of one model of an authorization. */
export const deleteTokenFamilyModel = statement<object, { grantId: string; model: string }>(
  'delete from oauth_state where grant_id = $grantId and model = $model',
)

/** Revokes an authorization. The first statement waits for tokens being written; the second one sees them. */
export async function deleteTokenFamily(db: Database, grantId: string): Promise<void> {
  await endTokenFamily(db, { grantId })
  await deleteOfTokenFamily(db, { grantId })
}

/** Records a poll of a device. False when it polled less than `spacingMs` ago: of parallel calls one gets true. */
export const notePoll = testStatement<{ model: string; idHash: Buffer; spacingMs: number }>(`
  update oauth_state set polled_at = statement_timestamp()
  where model = $model and id_hash = $idHash
    and (polled_at is null or polled_at <= statement_timestamp() - $spacingMs * interval '1 millisecond')`)

/** The encrypted answer to a redemption after `since`. */
export const findRefreshAnswer = rowStatement<{ answer: string }, { idHash: Buffer; since: Date }, string>(
  `select answer from oauth_state
  where model = 'RefreshToken' and id_hash = $idHash and consumed_at > $since and answer is not null`,
  ({ answer }) => answer,
)

/** Clears answers of redemptions before `before`. Returns their number. */
export const clearOldAnswers = sweepStatement(`
  update oauth_state s set answer = null
  from (
    select model, id_hash from oauth_state where answer is not null and consumed_at < $before limit $limit
    for update skip locked
  ) old
  where s.model = old.model and s.id_hash = old.id_hash`)

/** Deletes rows that expired before `before`. Returns their number. */
export const deleteExpiredState = sweepStatement(`
  delete from oauth_state s
  using (
    select model, id_hash from oauth_state where expires_at < $before order by expires_at limit $limit
    for update skip locked
  ) old
  where s.model = old.model and s.id_hash = old.id_hash`)
