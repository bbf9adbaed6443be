import { statement } from '../../postgres/statement/statement.ts'

/**
 * The sums of a span, by the minute. Most messages end within seconds and are found by their creation, the late ones
 * by an index of their own: a third index of all would cost every message. Each row is read once, in the background.
 */
export const readEndedMessages = statement<{ at: Date; measure: string; count: number }, { from: Date; to: Date }>(`
  select date_trunc('minute', e.ended_at) as at, e.status as measure, count(*)::int as count
  from (
    (select m.ended_at, m.status from realtime_message_ended m
      where m.created_at >= $from::timestamptz - interval '11 s' and m.created_at < $to
        and m.ended_at - m.created_at <= interval '11 s')
    union all
    (select m.ended_at, m.status from realtime_message_ended m
      where m.ended_at >= $from and m.ended_at < $to and m.ended_at - m.created_at > interval '11 s')
  ) e
  where e.ended_at >= $from and e.ended_at < $to
  group by 1, 2`)
