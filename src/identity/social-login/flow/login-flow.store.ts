import type { ConnectionId, SessionId } from '../../../base/id.ts'
import { deletionOfOld } from '../../../postgres/retention.ts'
import { defineRecord, type RecordOf } from '../../../postgres/statement/record.ts'
import { closingStatement, isAfter, rowStatement, statement } from '../../../postgres/statement/statement.ts'

/** A flow. `linkTo`: the user who connects; `proves`: the session that is proven; `secret`: the engine's, encrypted. */
const flow = defineRecord(
  'login_flow',
  [
    'state_hash',
    'provider',
    'connection',
    'user',
    'session',
    'redirect_url',
    'is_deep_link',
    'is_bound',
    'secret',
    'code_challenge',
    'posted_name',
    'posted_answer',
    'expires_at',
    'consumed_at',
  ],
  { user: 'linkTo', session: 'proves' },
).typed<{ proves: SessionId | null }>()
export type LoginFlow = RecordOf<typeof flow>

/** A new flow. */
export type NewFlow = Omit<LoginFlow, 'postedName' | 'postedAnswer' | 'consumedAt'>

/** Inserts a new flow, with the last statement of the transaction. */
export const insertFlow = closingStatement<NewFlow & { now: Date }>(`
  new_flow as (
    insert into login_flow (state_hash, provider, connection, purpose, "user", session, redirect_url, is_deep_link,
      is_bound, secret, code_challenge, expires_at, created_at)
    values ($stateHash, $provider, $connection, case when $linkTo::uuid is not null then 'link'
        when $proves::uuid is not null then 'proof' else 'sign-in' end, $linkTo, $proves, $redirectUrl, $isDeepLink, $isBound, $secret, $codeChallenge, $expiresAt, $now))`)

/** The flow of a state, in any condition. */
export const findFlow = rowStatement<LoginFlow, { stateHash: Buffer; provider: string }>(
  `select ${flow.members()} from login_flow where state_hash = $stateHash and provider = $provider`,
)

/** Consumes a valid flow. One statement, so that of several concurrent callbacks exactly one gets it. Undefined otherwise. */
export const consumeFlow = rowStatement<LoginFlow, { stateHash: Buffer; provider: string; now: Date }>(`
  update login_flow set consumed_at = $now
  where state_hash = $stateHash and provider = $provider and consumed_at is null and ${isAfter('expires_at', '$now')}
  returning ${flow.members()}`)

/** The number of flows by a connection that are neither finished nor expired, up to `limit`. */
export const countOpenFlows = rowStatement<
  { open: number },
  { connection: ConnectionId; now: Date; limit: number },
  number
>(
  `
  select count(*)::int as open from (select from login_flow
    where connection = $connection and (expires_at > $now) is true and num_nonnulls(consumed_at) = 0 limit $limit) x`,
  ({ open }) => open,
)

/** Stores the name in the answer of a flow. The first one wins. */
export const keepPostedName = statement<{ state_hash: Buffer }, { stateHash: Buffer; provider: string; name: string }>(`
  update login_flow set posted_name = $name
  where state_hash = $stateHash and provider = $provider and consumed_at is null and posted_name is null
  returning state_hash`)

/** Stores the encrypted answer that a provider posted. Undefined when the flow is not valid or has one already. */
export const keepPostedAnswer = rowStatement<
  { kept: Buffer },
  { stateHash: Buffer; provider: string; answer: string; now: Date }
>(`
  update login_flow set posted_answer = $answer
  where state_hash = $stateHash and provider = $provider and consumed_at is null and posted_answer is null
    and ${isAfter('expires_at', '$now')}
  returning state_hash as kept`)

/** Deletes flows that expired before `before`, at most `limit`. Returns their number. */
export const deleteExpiredFlows = deletionOfOld('login_flow', { key: 'state_hash', time: 'expires_at' })
