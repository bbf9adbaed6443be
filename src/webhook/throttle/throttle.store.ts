import { sweepStatement } from '../../postgres/retention.ts'

/** Deletes up to `limit` counts of webhooks last claimed before `before`. Returns their number. */
export const deleteOldThrottles = sweepStatement(`
  delete from webhook_throttle where webhook = any(array(
    select t.webhook from webhook_throttle t where t.claimed_at[cardinality(t.claimed_at)] < $before limit $limit
    for update skip locked))`)
