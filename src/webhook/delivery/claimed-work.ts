import type { AccountId, DispatchId, EventId, WebhookId } from '../../base/id.ts'
import type { ClaimRequest, Work } from '../../delivery/policy.ts'
import type { AttemptTrigger } from './outcome.ts'

/** A dispatch that this process has claimed, with all data of one attempt. */
export interface ClaimedDispatch extends Work {
  id: DispatchId
  /** The number of this attempt, 1-based, never reset. */
  attempt: number
  trigger: AttemptTrigger
  isTest: boolean
  /** A replay of a waiting row, whose schedule continues after it. */
  keepsSchedule: boolean
  isLimited: boolean
  createdAt: Date
  webhook: {
    id: WebhookId
    url: string
    secretEncrypted: string | null
    headersEncrypted: string | null
    signingKeyEncrypted: string | null
  }
  event: {
    id: EventId
    type: string
    createdAt: Date
    account: AccountId | null
    resource: string
    action: string
    resourceId: string | null
    url: string | null
    /** The trace of the causing request, as text; null without a request. */
    trace: string | null
  }
}

/** A claimed row as JSON, of the dispatch `d`, its webhook `w` and its event `e`. Times are Unix milliseconds. */
export const WORK_JSON = `
  json_build_array(d.document_id, d.fence, d.attempts, d.attempt_trigger, d.is_test,
    (extract(epoch from d.created_at) * 1000)::bigint, w.document_id, w.url, w.secret_encrypted, e.document_id, e.event,
    (extract(epoch from e.created_at) * 1000)::bigint, e.account, e.resource, e.action, e.resource_id, e.url,
    e.trace_context, d.keeps_schedule, w.headers_encrypted, w.signing_key_encrypted, w.max_per_second is not null)`

type WorkColumns = [
  DispatchId,
  number,
  number,
  AttemptTrigger,
  boolean,
  number,
  WebhookId,
  string,
  string | null,
  EventId,
  string,
  number,
  AccountId | null,
  string,
  string,
  string | null,
  string | null,
  string | null,
  boolean,
  string | null,
  string | null,
  /** Missing in rows that were claimed as they were routed: those of such a webhook never are. */
  boolean?,
]

/** Reads `WORK_JSON`. */
export function readClaimedDispatch(json: unknown): ClaimedDispatch {
  const [id, fence, attempt, trigger, isTest, createdAtMs, webhook, webhookUrl, secretEncrypted, ...event] =
    json as WorkColumns
  const [eventId, type, eventAtMs, account, resource, action, resourceId, url, trace, keepsSchedule, ...last] = event
  const [headersEncrypted, signingKeyEncrypted, isLimited = false] = last
  return {
    id,
    fence,
    group: webhook,
    attempt,
    trigger,
    isTest,
    keepsSchedule,
    isLimited,
    createdAt: new Date(createdAtMs),
    webhook: { id: webhook, url: webhookUrl, secretEncrypted, headersEncrypted, signingKeyEncrypted },
    event: { id: eventId, type, createdAt: new Date(eventAtMs), account, resource, action, resourceId, url, trace },
  }
}

/**
 * The part of a statement, of this name, that counts the rows in flight by webhook, as one JSON object: claims of other
 * workers, and those of this one, which are parameters (`BusyParams`). `ofOthers` reads the former: `LOCKING_CLAIMS`
 * first takes the lock of claims, `LOCKED_CLAIMS` is for a statement that runs under it.
 */
export const BUSY_WEBHOOKS = (name: string, ofOthers: string) => `
  ${name} as materialized (
    select jsonb_object_agg(b.webhook, b.in_flight) as counts from (
      select c.webhook, sum(c.in_flight)::int as in_flight from (
        select o.webhook, o.in_flight from ${ofOthers} o where $hasPeers::boolean
        union all
        select x.webhook, x.in_flight from unnest($busyWebhooks::uuid[], $busyCounts::int[]) as x (webhook, in_flight)
      ) c group by c.webhook
    ) b
  )`

/** Number of rows in flight of a webhook, by the part of this name. */
export const inFlightOf = (name: string, webhook: string) =>
  `coalesce(((select counts from ${name}) ->> ${webhook}::text)::int, 0)`

/** The rows of other workers, by webhook. Takes the lock of claims, so that all committed claims are counted. */
export const LOCKING_CLAIMS = 'claims_of_others($workerId)'

/** For a statement that began under the lock of claims. */
export const LOCKED_CLAIMS = `(
          select d.webhook, count(*)::int as in_flight from (
            select webhook from webhook_dispatch_open where lease_owner < $workerId
            union all
            select webhook from webhook_dispatch_open where lease_owner > $workerId
          ) d group by d.webhook)`

export interface BusyParams {
  workerId: string
  hasPeers: boolean
  /** The webhooks with attempts in flight in this process, with the numbers. */
  busyWebhooks: readonly string[]
  busyCounts: readonly number[]
}

/** The attempts in flight in this process, as parameters of `BUSY_WEBHOOKS`. */
export function listBusy({
  inFlight,
}: Pick<ClaimRequest, 'inFlight'>): Pick<BusyParams, 'busyWebhooks' | 'busyCounts'> {
  return { busyWebhooks: [...inFlight.keys()], busyCounts: [...inFlight.values()] }
}
