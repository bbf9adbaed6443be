import type { UserId } from '../../base/id.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import { rowStatement, statement } from '../../postgres/statement/statement.ts'

/** Decision of a user about an authorization. */
export type ConsentDecision = 'approve' | 'deny'

/** A stored decision. `authorizeUrl` is encrypted; null during the call of the engine. */
export interface EngineDecision {
  userId: UserId
  decision: ConsentDecision
  authorizeUrl: string | null
  /** The app; null until the engine names it. */
  clientId: string | null
  /** Whether this call may call the engine. */
  isClaimed: boolean
}

/** Writes of a claim. */
interface DecisionClaim {
  authorizationId: string
  userId: UserId
  decision: ConsentDecision
  apiScope: string
  now: Date
  staleBefore: Date
}

/**
 * Claims an authorization for one call of the engine. Of concurrent calls one gets it. A claim from before
 * `staleBefore` without a stored answer may be claimed again. Undefined when another call has just claimed it.
 */
export const claimDecision = rowStatement<EngineDecision, DecisionClaim>(`
  with claimed as (
    insert into oauth_engine_decision as d (authorization_id, "user", decision, api_scope, claimed_at)
    values ($authorizationId, $userId, $decision, $apiScope, $now)
    on conflict (authorization_id) do update
      set "user" = excluded."user", decision = excluded.decision, api_scope = excluded.api_scope,
        claimed_at = excluded.claimed_at
      where d.authorize_url is null and d.claimed_at <= $staleBefore
    returning "user", decision, authorize_url, client_id, true as is_claimed
  )
  select "user" as "userId", decision, authorize_url as "authorizeUrl", client_id as "clientId",
    is_claimed as "isClaimed"
  from claimed
  union all
  select "user", decision, authorize_url, client_id, false from oauth_engine_decision
  where authorization_id = $authorizationId and not exists (select from claimed)`)

/** Stores the answer of the engine. */
export const keepDecision = statement<
  never,
  { authorizationId: string; clientId: string | null; authorizeUrl: string; now: Date }
>(`
  update oauth_engine_decision set client_id = $clientId, authorize_url = $authorizeUrl, decided_at = $now
  where authorization_id = $authorizationId`)

/** Releases a claim whose authorization the engine refused; not that of a later call, which found it stale. */
export const releaseDecision = statement<never, { authorizationId: string; claimedAt: Date }>(`
  delete from oauth_engine_decision
  where authorization_id = $authorizationId and authorize_url is null and claimed_at = $claimedAt`)

/** Deletes decisions from before `before`, except the last approval of each user and app: the hook reads its scopes. */
export const deleteOldDecisions = deletionOfOld('oauth_engine_decision', {
  key: 'authorization_id',
  time: 'claimed_at',
  and: `(r.decided_at is null or r.decision = 'deny' or r.client_id is null or exists (
        select from oauth_engine_decision later
        where later."user" = r."user" and later.client_id = r.client_id and later.decision = 'approve'
          and later.decided_at > r.decided_at))`,
})
