import type { AccountId, EventId } from '../../base/id.ts'
import type { ClaimRequest, Work } from '../../delivery/policy.ts'

/** A message that this process has claimed: everything one attempt needs. Its group is its account. */
export interface ClaimedMessage extends Work {
  id: EventId
  /** The number of this attempt, 1-based. */
  attempt: number
  account: AccountId
  contract: string | null
  event: {
    id: EventId
    type: string
    createdAt: Date
    account: AccountId
    resource: string
    action: string
    resourceId: string | null
    url: string | null
  }
}

/** A claimed message as JSON, of the message `d` and its event `e`. Times are Unix milliseconds. */
export const MESSAGE_JSON = `
  json_build_array(d.document_id, d.fence, d.attempts, d.account, d.contract, e.event,
    (extract(epoch from e.created_at) * 1000)::bigint, e.resource, e.action, e.resource_id, e.url)`

type MessageColumns = [
  EventId,
  number,
  number,
  AccountId,
  string | null,
  string,
  number,
  string,
  string,
  string | null,
  string | null,
]

/** Reads `MESSAGE_JSON`. */
export function readClaimedMessage(json: unknown): ClaimedMessage {
  const [id, fence, attempt, account, contract, type, createdAtMs, resource, action, resourceId, url] =
    json as MessageColumns
  const createdAt = new Date(createdAtMs)
  return {
    ...{ id, fence, group: account, attempt, account, contract },
    event: { id, type, createdAt, account, resource, action, resourceId, url },
  }
}

/**
 * Whether another worker publishes messages of this account: then its next ones wait, to keep their order. The accounts
 * of all messages in flight of other workers are listed once, by the index of leases: for one account the planner may
 * read all of its messages.
 */
export const isTaken = (account: string) => `
  ($hasPeers::boolean and ${account} = any(array(
    select account from realtime_message_open where lease_owner < $workerId
    union all
    select account from realtime_message_open where lease_owner > $workerId)))`

/** Number of messages of an account in flight in this process, by the parameter of `countInFlight`. */
export const inFlightOf = (account: string) => `coalesce(($busyCounts::jsonb ->> ${account}::text)::int, 0)`

/** The messages in flight in this process by account, as the parameter `busyCounts`. */
export function countInFlight({ inFlight }: Pick<ClaimRequest, 'inFlight'>): string {
  return JSON.stringify(Object.fromEntries(inFlight))
}
