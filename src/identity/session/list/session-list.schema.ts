import type { SessionId } from '../../../base/id.ts'
import { named, nullable, TimestampSchema, UuidSchema } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import { nameDevice } from '../device.ts'
import type { SessionRecord } from '../session.store.ts'

/** A session in the list of sessions. */
export const ListedSessionRow = named(
  'ListedSession',
  Type.Object({
    document_id: UuidSchema,
    user: UuidSchema,
    account: nullable(UuidSchema),
    parent: nullable(UuidSchema),
    client_id: nullable(Type.String({ description: 'The app that the session is for; null for the person.' })),
    scope: nullable(Type.String({ description: 'What the person let the app do, separated by spaces.' })),
    is_current: Type.Boolean({ description: 'Whether it is the session of this request.' }),
    device: nullable(
      Type.String({ description: 'A name made from the user agent, such as `Firefox on Windows`. Null when unknown.' }),
    ),
    address: nullable(Type.String()),
    user_agent: nullable(Type.String()),
    amr: Type.Array(Type.String(), { description: 'The methods of the sign-in (RFC 8176).' }),
    acr: nullable(Type.String()),
    auth_time: TimestampSchema,
    last_used_at: TimestampSchema,
    expires_at: TimestampSchema,
    created_at: TimestampSchema,
    updated_at: TimestampSchema,
  }),
)

/** Maps a session for the wire, as the session `current` sees it. */
export function toListedSessionRow(session: SessionRecord, current: SessionId | null): Static<typeof ListedSessionRow> {
  return {
    document_id: session.id,
    user: session.userId,
    account: session.accountId,
    parent: session.parentId,
    client_id: session.client?.id ?? null,
    scope: session.client?.scope ?? null,
    is_current: session.id === current,
    device: nameDevice(session.userAgent),
    address: session.address,
    user_agent: session.userAgent,
    amr: session.amr,
    acr: session.acr,
    auth_time: session.authTime.toISOString(),
    last_used_at: session.lastUsedAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
    created_at: session.createdAt.toISOString(),
    updated_at: session.updatedAt.toISOString(),
  }
}
