import type { EventId, UserId } from '../../base/id.ts'

/** Version of the body that a target reads (docs/contract/provisioning.md#provisioning-events). */
const PAYLOAD_API_VERSION = '2026-09-11'

/** The changes of a user that a target receives. */
export const PROVISIONING_EVENTS = [
  'user.provisioned',
  'user.updated',
  'user.disabled',
  'user.enabled',
  'user.deprovisioned',
] as const
export type ProvisioningEvent = (typeof PROVISIONING_EVENTS)[number]

/** Whether a user may sign in; `deleted` in `user.deprovisioned` only. */
export type ProvisionedStatus = 'active' | 'disabled' | 'deleted'

/** Identity and status of a user: all that a target learns. Roles, permissions and accounts are never included. */
export interface ProvisionedUser {
  id: UserId
  email: string
  name: string | null
  status: ProvisionedStatus
}

/** One change of a user. */
export interface ProvisioningChange {
  /** The same for every target and attempt; targets deduplicate on it. */
  eventId: EventId
  type: ProvisioningEvent
  createdAt: Date
  user: ProvisionedUser
}

/**
 * The raw body of one attempt, serialized once: this text, as UTF-8, is signed and sent. The members are listed
 * one by one, so that nothing else is included.
 */
export function buildPayload({ eventId, type, createdAt, user }: ProvisioningChange, attempt: number): string {
  return JSON.stringify({
    id: eventId,
    type,
    api_version: PAYLOAD_API_VERSION,
    created_at: createdAt.toISOString(),
    attempt,
    data: { user: { document_id: user.id, email: user.email, name: user.name, status: user.status } },
  })
}
