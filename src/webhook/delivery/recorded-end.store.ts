import type { DispatchId, WebhookId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import type { CountedEnd, EarlierEnds } from './failure-count.ts'

/** Number of last deliveries of a webhook searched for a success (docs/contract/delivery.md#failure-count). */
export const LAST_DELIVERIES = 50

const select = statement<
  { webhook: WebhookId; last_success_at: Date | null; failures_at: Date[] },
  {
    webhooks: readonly WebhookId[]
    failures: readonly (Date | null)[]
    successes: readonly (Date | null)[]
    ids: readonly DispatchId[]
  }
>(`
  select x.webhook, e.last_success_at, e.failures_at
  from unnest($webhooks::uuid[], $failures::timestamptz[], $successes::timestamptz[])
    as x (webhook, failed_at, succeeded_at)
  cross join lateral later_ends(x.webhook, x.failed_at, x.succeeded_at, $ids::uuid[], ${LAST_DELIVERIES}) e`)

interface RecordedEnd extends CountedEnd {
  id: DispatchId
  webhook: WebhookId
}

/** Earlier recorded deliveries of these webhooks, locked by the caller, that ended after the given ones. */
export async function findEarlierEnds(
  db: Database,
  recorded: readonly RecordedEnd[],
): Promise<Map<WebhookId, EarlierEnds>> {
  const counted = recorded.filter(({ failureCount }) => failureCount !== 'keep')
  if (counted.length === 0) return new Map()
  const webhooks = [...Map.groupBy(counted, ({ webhook }) => webhook)]
  const firstOf = (ends: readonly RecordedEnd[], failureCount: CountedEnd['failureCount']) => {
    const times = ends.filter((end) => end.failureCount === failureCount).map(({ endedAt }) => endedAt.getTime())
    return times.length === 0 ? null : new Date(Math.min(...times))
  }
  const rows = await select(db, {
    webhooks: webhooks.map(([webhook]) => webhook),
    failures: webhooks.map(([, ends]) => firstOf(ends, 'add')),
    successes: webhooks.map(([, ends]) => firstOf(ends, 'reset')),
    ids: counted.map(({ id }) => id),
  })
  return new Map(rows.map((row) => [row.webhook, { lastSuccessAt: row.last_success_at, failuresAt: row.failures_at }]))
}
