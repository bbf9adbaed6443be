/** Time for which a row waits to be pulled, from its routing or its last replay (docs/contract/pull.md#retention). */
const PULL_KEPT_MS = 7 * 24 * 3_600_000

/** Expiry of a row that is written now, to be pulled. */
export function findKeptUntil(now: Date): Date {
  return new Date(now.getTime() + PULL_KEPT_MS)
}

/**
 * The part of a statement that schedules the visit of the webhooks of `source` (a part or a table expression) by a
 * claim, at `at` or at its own column `visit_at`; never later than already scheduled, and not before a throttle lets an
 * attempt start, which is at most a second later, also after a change of the database's clock. With `wakes` also for an
 * inactive webhook, for a test.
 */
export function queueWebhooks(source: string, { at, wakes = false }: { at?: string; wakes?: boolean } = {}): string {
  return `
    insert into webhook_queue as q (webhook, visit_at)
    select ${at === undefined ? 'webhook, visit_at' : `distinct webhook, ${at}::timestamptz`} from ${source} order by webhook
    on conflict (webhook) do update set visit_at = case
      when q.free_at is null then least(q.visit_at, excluded.visit_at)
      else greatest(least(q.visit_at, excluded.visit_at), least(q.free_at, excluded.visit_at + interval '1 second'))
      end${wakes ? ', is_held = false' : ''}`
}
