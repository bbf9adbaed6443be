import type { AccountId, ConnectionId, SessionId, UserId } from '../../base/id.ts'
import type { PortalVisit, SessionProof } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../postgres/statement/record.ts'
import { isAfter, rowStatement, statement } from '../../postgres/statement/statement.ts'
import { HOLDINGS, HOLDINGS_OF_USER } from '../access/delegation.store.ts'
import type { Holdings } from '../access/delegation.ts'
import type { PortalRole } from '../access/system-roles.ts'

/** A user with its permissions, read in one statement. */
export interface CallerRecord extends Holdings {
  userId: UserId
}

/** The members of a caller without a session. */
export const NO_SESSION = { sessionId: null, clientId: null, accountId: null, proof: null }

/** The account that proven sessions alone reach, and the patterns that the token lacks there. */
export interface NarrowedRecord {
  account: AccountId
  connection: ConnectionId
  /** Null for a token that lacks the account. */
  provenUntil: Date | null
  patterns: string[]
}

interface NarrowedColumns {
  narrowedAccount: AccountId | null
  narrowedBy: ConnectionId | null
  provenUntil: Date | null
  lackedPatterns: string[] | null
}

/**
 * A session without a second factor lacks the roles that need one, and one that no connection has proven may lack an
 * account. A key has the roles, because only a session with them can create it
 * (docs/contract/second-factor.md#roles-that-need-a-second-factor).
 */
const HOLDINGS_OF_SESSION = `
  left join lateral session_narrowing(u.document_id, s.document_id, $now) n on true
  cross join lateral user_holdings(u.document_id, 'mfa' = any(s.amr), case when n.proven_until is null then n.account end) h`

const NARROWED_SESSION = `n.account as "narrowedAccount", n.connection as "narrowedBy", n.proven_until as "provenUntil",
    case when n.account is not null and n.proven_until is null
      then membership_patterns_at(u.document_id, n.account, 'mfa' = any(s.amr)) end as "lackedPatterns"`

/** A key reaches an account that narrows sessions when it is bound to it. */
const HOLDINGS_OF_KEY = `
  left join lateral narrowing_of(u.document_id) n on n.account is distinct from k.account
  cross join lateral user_holdings(u.document_id, true, n.account) h`

const NARROWED_KEY = `n.account as "narrowedAccount", n.connection as "narrowedBy", null::timestamptz as "provenUntil",
    case when n.account is not null then membership_patterns_at(u.document_id, n.account, true) end as "lackedPatterns"`

/** Splits the columns of a narrowing off. */
function readNarrowed<Row extends NarrowedColumns>({
  narrowedAccount: account,
  narrowedBy: connection,
  provenUntil,
  lackedPatterns,
  ...row
}: Row): Omit<Row, keyof NarrowedColumns> & { narrowed: NarrowedRecord | null } {
  const isNarrowed = account !== null && connection !== null
  return { ...row, narrowed: isNarrowed ? { account, connection, provenUntil, patterns: lackedPatterns ?? [] } : null }
}

const OF_CALLER = `u.document_id as "userId", ${HOLDINGS}`

/** A row with `OF_CALLER`. */
interface CallerRow {
  userId: UserId
  holdings: Holdings
}

const session = defineRecord(
  'session',
  ['account', 'client_id', 'scope', 'expires_at', 'last_used_at', 'amr', 'auth_time'],
  {
    account: 'accountId',
  },
)

/** The caller of a valid session: unrevoked, unexpired, of this user, who is active. */
export const findSessionCaller = rowStatement<
  CallerRow & RecordOf<typeof session> & Pick<SessionProof, 'hasFactor'> & NarrowedColumns,
  { sessionId: SessionId; userId: UserId; now: Date },
  SessionCallerRecord
>(
  `select ${OF_CALLER}, ${session.members('s')}, has_second_factor(u.document_id) as "hasFactor",
    ${NARROWED_SESSION}
  from session s join "user" u on u.document_id = s."user" ${HOLDINGS_OF_SESSION}
  where s.document_id = $sessionId and s."user" = $userId
    and s.revoked_at is null and ${isAfter('s.expires_at', '$now')} and u.is_actived and u.deleted_at is null`,
  (row) => {
    const { holdings, clientId, scope, amr, authTime, hasFactor, ...caller } = readNarrowed(row)
    return {
      ...caller,
      ...holdings,
      client: clientId === null || scope === null ? null : { id: clientId, scope },
      proof: { hasFactor, isMultiFactor: amr.includes('mfa'), provenAt: authTime },
    }
  },
)

/** The caller of a valid session, with the data of the session. */
export interface SessionCallerRecord extends CallerRecord {
  accountId: AccountId | null
  /** The app of the session with its granted scopes; null for a session of the user. */
  client: { id: string; scope: string } | null
  expiresAt: Date
  lastUsedAt: Date
  proof: SessionProof
  narrowed: NarrowedRecord | null
}

const selectUserCallers = statement<CallerRow, { users: readonly UserId[] }>(`
  select ${OF_CALLER} from "user" u ${HOLDINGS_OF_USER}
  where u.document_id = any($users::uuid[]) and u.is_actived and u.deleted_at is null`)

/** The rows of the active ones of these users. */
export async function findUserCallers(db: Database, users: readonly UserId[]): Promise<CallerRecord[]> {
  return (await selectUserCallers(db, { users })).map(({ holdings, ...caller }) => ({ ...caller, ...holdings }))
}

/** The owner of an API key, with the patterns of the key and the account that it is bound to. */
type KeyCallerRecord = CallerRecord & RecordOf<typeof apiKey> & { narrowed: NarrowedRecord | null }

const apiKey = defineRecord('api_key', ['document_id', 'permissions', 'account', 'last_used_at', 'expires_at'], {
  document_id: 'apiKeyId',
  permissions: 'keyPatterns',
  account: 'keyAccount',
})

/** The owner of a valid API key: unrevoked, unexpired, of an active user, and of an account that is not deleted. */
export const findKeyCaller = rowStatement<
  CallerRow & RecordOf<typeof apiKey> & NarrowedColumns,
  { tokenHash: Buffer; now: Date },
  KeyCallerRecord
>(
  `select ${OF_CALLER}, ${apiKey.members('k')}, ${NARROWED_KEY}
  from api_key k join "user" u on u.document_id = k."user" ${HOLDINGS_OF_KEY}
  where k.token_hash = $tokenHash and k.revoked_at is null and (k.expires_at is null or k.expires_at > $now)
    and (k.account is null or (select a.deleted_at is null from account a where a.document_id = k.account))
    and u.is_actived and u.deleted_at is null`,
  (row) => {
    const { holdings, ...caller } = readNarrowed(row)
    return { ...caller, ...holdings }
  },
)

/** A portal session, with the permissions of its API key and the owner of that key. */
export interface PortalCallerRecord extends CallerRecord {
  portal: PortalVisit
  role: PortalRole
  account: AccountId
  apiKeyId: string
  keyPatterns: string[]
  /** The expiry of the session or of its key, whichever is first. */
  expiresAt: Date
}

const portalSession = defineRecord('portal_session', ['document_id', 'role', 'account', 'external_user', 'api_key'], {
  document_id: 'sessionId',
  api_key: 'apiKeyId',
})

type PortalCallerRow = CallerRow &
  RecordOf<typeof portalSession> &
  Pick<PortalCallerRecord, 'keyPatterns' | 'expiresAt'>

/**
 * The caller of a valid portal session: also of a valid key, with an active owner and an account not deleted. Each row is
 * looked up by its key, and checked afterwards.
 */
export const findPortalCaller = rowStatement<PortalCallerRow, { tokenHash: Buffer; now: Date }, PortalCallerRecord>(
  `select ${OF_CALLER}, ${portalSession.members('p')}, k.permissions as "keyPatterns",
    least(p.expires_at, k.expires_at) as "expiresAt"
  from (select * from portal_session where token_hash = $tokenHash offset 0) p
  cross join lateral (select * from api_key where document_id = p.api_key offset 0) k
  join "user" u on u.document_id = k."user" ${HOLDINGS_OF_KEY}
  where p.revoked_at is null and ${isAfter('p.expires_at', '$now')}
    and k.revoked_at is null and (k.expires_at is null or k.expires_at > $now)
    and (k.account is null or k.account = p.account)
    and (select a.deleted_at is null from account a where a.document_id = p.account)
    and u.is_actived and u.deleted_at is null`,
  ({ holdings, sessionId, externalUser, ...caller }) => ({
    ...caller,
    ...holdings,
    portal: { id: sessionId, externalUser },
  }),
)

/** Updates the last use of a session, unless it was updated after `before`. */
export const touchSession = statement<never, { id: SessionId; before: Date; now: Date }>(
  `update session set last_used_at = $now where document_id = $id and last_used_at <= $before`,
)

/** Updates the last use of a key, unless it was updated after `before`: at most once a minute. */
export const touchApiKey = statement<never, { id: string; before: Date; now: Date }>(`
  update api_key set last_used_at = $now
  where document_id = $id and (last_used_at is null or last_used_at <= $before)`)
