import type { UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../../postgres/statement/record.ts'
import { isAfter, type Joined, statement } from '../../../postgres/statement/statement.ts'
import { USER_CLAIMS, type UserClaims } from '../../claims/user-claims.store.ts'
import type { GrantRecord } from '../../grant/grant.store.ts'
import { FOLLOWS_LIVE_BROWSER, type FoundState, found } from './state.store.ts'

type Payload = Record<string, unknown>

type TokenRow = FoundState & {
  model: string
  tokenFamily: Payload | null
  session: Payload | null
} & Joined<UserClaims>

/** A code or token with what decides about it. */
export interface LoadedToken {
  model: string
  found: FoundState
  /** Its family, the session of the provider that it was issued in, and its user: undefined for deleted ones. */
  tokenFamily: FoundState | undefined
  session: FoundState | undefined
  user: UserClaims | undefined
}

const toFound = (payload: Payload | null): FoundState | undefined =>
  payload === null ? undefined : { payload, consumedAt: null, consumedBy: null }

const toUserClaims = (row: Joined<UserClaims>): UserClaims | undefined =>
  row.id === null ? undefined : (row as UserClaims)

/**
 * Written so that PostgreSQL keeps one plan, which is good also for a nearly empty table. Two models instead of an
 * array: it expects ten elements of an unknown array, and would plan the statement for each request. Lateral joins with
 * a limit look one row up by its whole key.
 */
const selectTokens = statement<TokenRow, { model: string; other: string; idHash: Buffer; now: Date }>(`
  select t.model, ${found.members('t')}, f.payload as "tokenFamily", p.payload as session, ${USER_CLAIMS}
  from oauth_state t
  left join lateral (
    select g.payload from oauth_state g
    where g.model = 'Grant' and g.id_hash = sha256(convert_to(t.grant_id, 'UTF8'))
      and ${isAfter('g.expires_at', '$now')}
    limit 1
  ) f on true
  left join lateral (
    select s.payload from oauth_state s
    where s.model = 'Session' and s.uid = t.payload ->> 'sessionUid' and ${isAfter('s.expires_at', '$now')}
      and ${FOLLOWS_LIVE_BROWSER}
    limit 1
  ) p on true
  left join lateral (
    select * from "user" x where x.document_id = uuid_of(t.payload ->> 'accountId') limit 1
  ) u on u.is_actived and u.deleted_at is null
  where t.model in ($model, $other) and t.id_hash = $idHash and ${isAfter('t.expires_at', '$now')}`)

/** The rows with this id that have not expired, one of each model at most, each with what decides about it. */
export async function loadTokens(
  db: Database,
  { models, idHash, now }: { models: readonly [string, string?]; idHash: Buffer; now: Date },
): Promise<LoadedToken[]> {
  const [model, other = model] = models
  const rows = await selectTokens(db, { model, other, idHash, now })
  return rows.map(({ model, payload, consumedAt, consumedBy, tokenFamily, session, ...user }) => ({
    model,
    found: { payload, consumedAt, consumedBy },
    tokenFamily: toFound(tokenFamily),
    session: toFound(session),
    user: toUserClaims(user),
  }))
}

/** Way and time of a sign-in. */
const signIn = defineRecord('session', ['amr', 'acr', 'auth_time'])

/** A grant, beside the columns of a user. */
const given = defineRecord(
  'oauth_grant',
  ['document_id', 'scopes', 'refused_scopes', 'redirect_uris', 'created_at', 'updated_at'],
  { document_id: 'grantId', created_at: 'grantedAt', updated_at: 'grantUpdatedAt' },
)

type BrowserRow = { session: Payload | null; tokenFamily: Payload | null } & Joined<RecordOf<typeof signIn>> &
  Joined<RecordOf<typeof given>> &
  Joined<UserClaims>

/** Rows at the start of an authorization. */
export interface LoadedBrowser {
  /** The session of the provider in this browser. */
  session: FoundState | undefined
  /** Sign-in of the user; undefined when the session of the browser has ended. */
  signIn: RecordOf<typeof signIn> | undefined
  user: UserClaims | undefined
  /** Grant of the user to the client, and its token family in this browser. */
  grant: GrantRecord | undefined
  tokenFamily: FoundState | undefined
}

const selectBrowser = statement<
  BrowserRow,
  { idHash: Buffer | null; sessionId: string; userId: string; clientId: string | null; now: Date }
>(`
  select s.payload as session, f.payload as "tokenFamily", ${signIn.members('b')}, ${given.members('g')}, ${USER_CLAIMS}
  from (
    select $idHash::bytea as id_hash, $sessionId::uuid as browser, $userId::uuid as user_id, $clientId::text as client
  ) k
  left join lateral (
    select o.payload from oauth_state o
    where o.model = 'Session' and o.id_hash = k.id_hash and ${isAfter('o.expires_at', '$now')}
    limit 1
  ) s on true
  left join session b on b.document_id = k.browser
  left join "user" u on u.document_id = k.user_id and u.is_actived and u.deleted_at is null
  left join oauth_grant g on g."user" = k.user_id and g.client = uuid_of(k.client) and g.revoked_at is null
  left join lateral (
    select o.payload from oauth_state o
    where o.model = 'Grant' and ${isAfter('o.expires_at', '$now')}
      and o.id_hash = sha256(convert_to(s.payload -> 'authorizations' -> k.client ->> 'grantId', 'UTF8'))
    limit 1
  ) f on true`)

/** Reads what an authorization in a browser starts with, in one statement. `idHash`: null for a browser without the cookie. */
export async function loadBrowser(
  db: Database,
  key: { idHash: Buffer | null; sessionId: string; userId: string; clientId: string | undefined; now: Date },
): Promise<LoadedBrowser> {
  const { idHash, sessionId, userId, clientId, now } = key
  const [row] = await selectBrowser(db, { idHash, sessionId, userId, clientId: clientId ?? null, now })
  if (!row) throw new Error('the statement returns one row')
  const { session, tokenFamily, amr, acr, authTime, grantId, scopes, refusedScopes, redirectUris, ...rest } = row
  const { grantedAt, grantUpdatedAt, ...user } = rest
  const ids = { id: grantId, userId: userId as UserId, clientId: clientId as GrantRecord['clientId'] }
  const grant = { ...ids, scopes, refusedScopes, redirectUris, createdAt: grantedAt, updatedAt: grantUpdatedAt }
  return {
    session: toFound(session),
    signIn: authTime === null ? undefined : { amr: amr ?? [], acr, authTime },
    user: toUserClaims(user),
    grant: grantId === null ? undefined : (grant as GrantRecord),
    tokenFamily: toFound(tokenFamily),
  }
}
