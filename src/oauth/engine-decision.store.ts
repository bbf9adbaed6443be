import type { UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { statement } from '../postgres/statement.ts'

/** What a person decides about an authorization. */
export type ConsentDecision = 'approve' | 'deny'

/** A decision as it is kept. `authorizeUrl` is encrypted; null while the engine is asked. */
export interface EngineDecision {
  userId: UserId
  decision: ConsentDecision
  authorizeUrl: string | null
  /** Whether this call may ask the engine. */
  isClaimed: boolean
}

const claim = statement<{
  user: UserId
  decision: ConsentDecision
  authorize_url: string | null
  is_claimed: boolean
}>(`
  with claimed as (
    insert into oauth_engine_decision as d (authorization_id, "user", decision, api_scope, claimed_at)
    values ($1, $2, $3, $4, $5)
    on conflict (authorization_id) do update
      set "user" = excluded."user", decision = excluded.decision, api_scope = excluded.api_scope,
        claimed_at = excluded.claimed_at
      where d.authorize_url is null and d.claimed_at <= $6
    returning "user", decision, authorize_url, true as is_claimed
  )
  select * from claimed
  union all
  select "user", decision, authorize_url, false from oauth_engine_decision
  where authorization_id = $1 and not exists (select from claimed)`)

/**
 * Claims an authorization for one question to the engine. Of several calls at once one gets it. A claim from before
 * `staleBefore` whose answer was not kept may be claimed again. Undefined when another call has just claimed it.
 */
export async function claimDecision(
  db: Database,
  row: {
    authorizationId: string
    userId: UserId
    decision: ConsentDecision
    apiScope: string
    now: Date
    staleBefore: Date
  },
): Promise<EngineDecision | undefined> {
  const { authorizationId, userId, decision, apiScope, now, staleBefore } = row
  const [kept] = await claim(db, [authorizationId, userId, decision, apiScope, now, staleBefore])
  return (
    kept && {
      userId: kept.user,
      decision: kept.decision,
      authorizeUrl: kept.authorize_url,
      isClaimed: kept.is_claimed,
    }
  )
}

const keep = statement(`
  update oauth_engine_decision set client_id = $2, authorize_url = $3, decided_at = $4 where authorization_id = $1`)

/** Keeps the answer of the engine. */
export async function keepDecision(
  db: Database,
  row: { authorizationId: string; clientId: string | null; authorizeUrl: string; now: Date },
): Promise<void> {
  await keep(db, [row.authorizationId, row.clientId, row.authorizeUrl, row.now])
}

const release = statement('delete from oauth_engine_decision where authorization_id = $1 and authorize_url is null')

/** Gives a claim up whose question the engine refused. */
export async function releaseDecision(db: Database, authorizationId: string): Promise<void> {
  await release(db, [authorizationId])
}

const forget = statement(`delete from oauth_engine_decision where "user" = $1 and client_id = $2`)

/** Forgets what a person granted an app. */
export async function forgetDecisions(db: Database, userId: UserId, clientId: string): Promise<void> {
  await forget(db, [userId, clientId])
}
