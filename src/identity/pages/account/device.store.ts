import type { SessionId, UserId } from '../../../base/id.ts'
import { statement } from '../../../postgres/statement/statement.ts'

/** A valid session of a sign-in, not one opened from another session for an app. */
export interface Device {
  id: SessionId
  address: string | null
  userAgent: string | null
  signedInAt: Date
  /** The sign-in or the last refresh. */
  lastUsedAt: Date
}

const DEVICES_LIMIT = 100

/** The devices of a user, the most recently seen first. */
export const listDevices = statement<Device, { userId: UserId; now: Date }>(`
  select s.document_id as id, s.address, s.user_agent as "userAgent", s.created_at as "signedInAt",
    s.last_used_at as "lastUsedAt"
  from session s
  where s."user" = $userId and s.revoked_at is null and s.expires_at > $now and s.parent is null
    and s.client_id is null
  order by s.last_used_at desc, s.document_id desc limit ${DEVICES_LIMIT}`)
