import type { EventId, Id, UserId } from '../../base/id.ts'
import type { Work } from '../../delivery/policy.ts'
import type { TargetId, TargetProtocol } from '../target/target.store.ts'
import type { DeliveryTrigger } from './outcome.ts'
import type { ProvisionedStatus, ProvisioningChange, ProvisioningEvent } from './payload.ts'

export type DeliveryId = Id<'provisioning delivery'>

/** A delivery that this process has claimed: everything one attempt needs. */
export interface ClaimedDelivery extends Work {
  id: DeliveryId
  /** The number of this attempt, 1-based, never reset. */
  attempt: number
  trigger: DeliveryTrigger
  target: {
    id: TargetId
    protocol: TargetProtocol
    url: string
    secretEncrypted: string
    /** Raised with each change of the URL. */
    generation: number
  }
  change: ProvisioningChange
  /** The id that a SCIM service gave the user; null until it has, and after the target moved. */
  remoteId: string | null
}

/** A claimed row as JSON, of the delivery `d`, its stream `s` and its target `t`. Times are Unix milliseconds. */
export const DELIVERY_JSON = `
  json_build_array(d.document_id, s.fence, d.attempts, d.attempt_trigger, t.document_id, t.protocol, t.url,
    t.secret_encrypted, d.event_id, d.type, (extract(epoch from d.created_at) * 1000)::bigint, d.user_id, d.email, d.name,
    d.user_status, case when s.generation = t.generation then s.remote_id end, t.generation)`

type DeliveryColumns = [
  DeliveryId,
  number,
  number,
  DeliveryTrigger,
  TargetId,
  TargetProtocol,
  string,
  string,
  EventId,
  ProvisioningEvent,
  number,
  UserId,
  string,
  string | null,
  ProvisionedStatus,
  string | null,
  number,
]

/** Reads `DELIVERY_JSON`. */
export function readClaimedDelivery(json: unknown): ClaimedDelivery {
  const [id, fence, attempt, trigger, target, protocol, url, secretEncrypted, ...change] = json as DeliveryColumns
  const [eventId, type, createdAtMs, user, email, name, status, remoteId, generation] = change
  return {
    id,
    fence,
    group: target,
    attempt,
    trigger,
    target: { id: target, protocol, url, secretEncrypted, generation },
    change: { eventId, type, createdAt: new Date(createdAtMs), user: { id: user, email, name, status } },
    remoteId,
  }
}
