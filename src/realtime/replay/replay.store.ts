import type { AccountId, EventId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement, valueStatement } from '../../postgres/statement/statement.ts'
import type { MESSAGE_STATUSES } from '../channel/message.store.ts'
import type { MessageEvent } from '../channel/message.ts'

/** Maximum number of messages that a replay reads, of any status. */
export const REPLAY_LIMIT = 1_000

/** A message since a position, and the position. */
export interface ReplayRow extends MessageEvent {
  status: (typeof MESSAGE_STATUSES)[number]
  /** End of its last attempt; for a message in flight, the start of that attempt. */
  publishedAt: Date
  /** The time of the position. */
  seenAt: Date
}

/** A position on a channel. */
export interface ReplayParams {
  account: AccountId
  /** Of the channel of a contract. */
  contract: string | null
  /** Time at which the page joined. */
  since: Date
  /** Last message received since; null, or one of another channel, counts as none. */
  after: EventId | null
}

/** Age at its end from which a message is found by the index of late ones. */
const LATE = `interval '10 s'`

/**
 * The messages that may have been published on a channel since a position. Those up to 5 s before it are among them: the
 * times are those of the publishing processes, and messages of one call have one time. One in flight may be published
 * already. Each part reads by its index, up to the limit.
 */
const build = ({ ended, of }: { ended: string; of: string }) =>
  statement<ReplayRow, ReplayParams & { limit: number }>(`
  with position as materialized (
    select max(from_at) as from_at, max(seen_at) as seen_at from (
      select coalesce(last_attempt_at, ended_at) - interval '5 s' as from_at, ended_at as seen_at
      from realtime_message_ended where document_id = $after::uuid and (account = $account) is true and ${of}
      union all
      select last_attempt_at - interval '5 s', last_attempt_at
      from realtime_message_open where document_id = $after::uuid and (account = $account) is true and ${of}
        and attempts > 0
      union all
      select $since::timestamptz - interval '5 s', $since::timestamptz
    ) known
  ),
  found as (
    (select document_id, status, ended_at from realtime_message_ended
      where ${ended} and created_at >= (select from_at - ${LATE} from position)
        and ended_at >= (select from_at from position)
      order by created_at limit $limit)
    union
    (select document_id, status, ended_at from (
      select document_id, status, ended_at, contract from realtime_message_ended
      where account = $account and ended_at - created_at > ${LATE} and ended_at >= (select from_at from position)
      order by ended_at limit $limit) late where ${of})
    union
    (select document_id, status, ended_at from (
      select document_id, case when attempts = 0 then 'pending' else 'published' end as status,
        coalesce(last_attempt_at, created_at) as ended_at, contract from realtime_message_open
      where account = $account order by created_at limit $limit) waiting where ${of})
  )
  select e.document_id as id, f.status, f.ended_at as "publishedAt", p.seen_at as "seenAt", e.event as type,
    e.created_at as "createdAt", e.account, e.resource, e.action, e.resource_id as "resourceId", e.url
  from position p
  cross join (select * from found limit $limit) f
  cross join lateral (select * from event_occurrence e where e.document_id = f.document_id offset 0) e
  order by e.document_id`)

const ofAccount = build({ ended: 'account = $account', of: 'true' })
const ofContract = build({
  ended: 'contract = $contract::uuid and (account = $account) is true',
  of: '(contract = $contract::uuid) is true',
})

/** Reads up to `REPLAY_LIMIT` messages since a position, in the order of their events. */
export function readReplay(db: Database, position: ReplayParams): Promise<ReplayRow[]> {
  const read = position.contract === null ? ofAccount : ofContract
  return read(db, { ...position, limit: REPLAY_LIMIT })
}

/** When the last message that was received was published; undefined where this database does not have it. */
export const findPosition = valueStatement<Date | undefined, Omit<ReplayParams, 'since'>>(`
  select coalesce(last_attempt_at, ended_at) as at from realtime_message_ended
  where document_id = $after::uuid and (account = $account) is true
    and ($contract::uuid is null or contract = $contract::uuid)
  union all
  select last_attempt_at from realtime_message_open
  where document_id = $after::uuid and (account = $account) is true and attempts > 0
    and ($contract::uuid is null or contract = $contract::uuid)`)
