import type { SessionId } from '../../../base/id.ts'
import { namedObject, nullable, UuidSchema } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import { wireOf } from '../../../http/shape/wire-row.ts'
import { nameDevice, recognizeDevice } from '../device.ts'
import { sessionAppMembers, sessionSignInMembers } from '../session.schema.ts'
import { type SessionRecord, session, withClient } from '../session.store.ts'

/** A session in the list of sessions. */
export const ListedSessionRow = namedObject('ListedSession', {
  document_id: UuidSchema,
  user: UuidSchema,
  account: nullable(UuidSchema),
  parent: nullable(UuidSchema),
  ...sessionAppMembers,
  is_current: Type.Boolean({ description: 'Whether it is the session of this request.' }),
  device: nullable(
    Type.String({ description: 'A name made from the user agent, such as `Firefox on Windows`. Null when unknown.' }),
  ),
  program: nullable(
    Type.String({ description: 'The program of `device`: `Firefox`; `app` for an unnamed one. Null when unknown.' }),
  ),
  system: nullable(Type.String({ description: 'The system of `device`: `Windows`. Null when unknown.' })),
  ...sessionSignInMembers,
})

const toStoredRow = wireOf(session, ListedSessionRow)

/** Maps a session for the wire, as the session `current` sees it. */
export function toListedSessionRow(listed: SessionRecord, current: SessionId | null): Static<typeof ListedSessionRow> {
  const { userAgent } = listed
  const seen = { device: nameDevice(userAgent), ...recognizeDevice(userAgent) }
  return { ...toStoredRow(withClient(listed)), is_current: listed.id === current, ...seen }
}
