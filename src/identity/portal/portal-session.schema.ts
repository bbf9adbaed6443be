import { CATALOGUES } from '../../base/language/texts.ts'
import { enumSchema, lineSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { PORTAL_ROLES, type PortalRole } from '../access/system-roles.ts'
import { AccountNameRow } from '../session/session.schema.ts'
import {
  type FoundPortalSession,
  type ListedPortalSession,
  type PortalSessionRecord,
  portalSession,
} from './portal-session.store.ts'

const RoleSchema = enumSchema(Object.keys(PORTAL_ROLES) as [PortalRole, ...PortalRole[]], {
  description: 'The permissions of the session in the account.',
})

const StatusSchema = enumSchema(['waiting', 'open', 'ended'], {
  description: '`waiting`: the link was not opened yet.',
})

const members = {
  document_id: UuidSchema,
  account: UuidSchema,
  api_key: Type.String({ ...UuidSchema, description: 'The key that made it: the session ends with it.' }),
  role: RoleSchema,
  external_user: nullable(Type.String({ description: 'The name that the platform gave the end user.' })),
  status: StatusSchema,
  opened_at: nullable(TimestampSchema),
  expires_at: Type.String({ ...TimestampSchema, description: 'Of the link until it is opened, then of the session.' }),
  revoked_at: nullable(TimestampSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
}

/** A portal session as the API shows it. */
export const PortalSessionRow = namedObject('PortalSession', members)

/** The answer to create, the only one that shows the link. */
export const PortalSessionWithUrl = namedObject('PortalSessionWithUrl', {
  ...members,
  url: nullable(Type.String({ description: 'Opens the portal once. Shown once; null in an idempotent replay.' })),
})

export const CreatePortalSessionBody = namedObject('CreatePortalSession', {
  role: RoleSchema,
  external_user: Type.Optional(nullable(lineSchema(200))),
  return_url: Type.Optional(
    nullable(
      Type.String({
        maxLength: 2048,
        description: 'The page of the platform that opens the portal again. Shown when the session is over.',
      }),
    ),
  ),
  lifetime_seconds: Type.Optional(
    Type.Integer({ minimum: 300, maximum: 43_200, description: 'Of the opened session. Default 3600.' }),
  ),
  theme: Type.Optional(enumSchema(['light', 'dark'], { description: 'Default: that of the browser.' })),
  language: Type.Optional(enumSchema(Object.keys(CATALOGUES), { description: 'Default: that of the browser.' })),
})

export const PortalSessionParams = Type.Object({ id: UuidSchema, session: UuidSchema })

const TokenSchema = Type.String({ minLength: 1, maxLength: 200 })

export const OpenPortalSessionBody = namedObject('OpenPortalSession', {
  token: Type.String({ ...TokenSchema, description: 'The `token` in the fragment of the link.' }),
})

export const EndPortalSessionBody = namedObject('EndPortalSession', {
  token: Type.String({ ...TokenSchema, description: 'The token of the session.' }),
})

/** An opened session, as its page needs it. */
export const OpenedPortalSession = namedObject('OpenedPortalSession', {
  document_id: UuidSchema,
  token: Type.String({ description: '`sbp_...`, the bearer token of the session.' }),
  account: AccountNameRow,
  role: RoleSchema,
  permissions: Type.Array(Type.String(), { description: 'What the role may, as patterns.' }),
  external_user: nullable(Type.String()),
  return_url: nullable(Type.String()),
  expires_at: TimestampSchema,
  expires_in: Type.Integer({ description: 'Seconds until then: clocks of browsers may be wrong.' }),
})

/** The answer to an end, also for an unknown session. */
export const EndedPortalSession = namedObject('EndedPortalSession', { is_ended: Type.Boolean() })

function findStatus(session: PortalSessionRecord, now: Date): Static<typeof StatusSchema> {
  if (session.revokedAt !== null || session.expiresAt <= now) return 'ended'
  return session.openedAt === null ? 'waiting' : 'open'
}

const toStoredRow = wireOf(portalSession, PortalSessionRow)

/** Maps a portal session for the wire, with its state at an instant. */
export function toPortalSessionRow(session: PortalSessionRecord, now: Date): Static<typeof PortalSessionRow> {
  return { ...toStoredRow(session), status: findStatus(session, now) }
}

/** Maps a session of a list: it ended when its key was revoked. */
export function toListedRow(session: ListedPortalSession, now: Date): Static<typeof PortalSessionRow> {
  return toPortalSessionRow({ ...session, revokedAt: session.revokedAt ?? session.keyRevokedAt }, now)
}

/** Maps an opened session for its page. */
export function toOpenedRow(
  session: FoundPortalSession,
  { token, now }: { token: string; now: Date },
): Static<typeof OpenedPortalSession> {
  return {
    document_id: session.id,
    token,
    account: { document_id: session.account, name: session.accountName },
    role: session.role,
    permissions: [...PORTAL_ROLES[session.role]],
    external_user: session.externalUser,
    return_url: session.returnUrl,
    expires_at: session.expiresAt.toISOString(),
    expires_in: Math.floor((session.expiresAt.getTime() - now.getTime()) / 1_000),
  }
}
