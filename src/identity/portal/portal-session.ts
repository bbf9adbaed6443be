import { createHash } from 'node:crypto'
import type { AccountId, Id, IdMaker } from '../../base/id.ts'
import type { Random } from '../../base/random.ts'
import { invalidField, notFound, Problem } from '../../http/problem/problem.ts'
import { type Caller, includesAccount } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { checkMayOpenPortal } from '../access/delegation.ts'
import { PORTAL_ROLES, type PortalRole } from '../access/system-roles.ts'
import type { AccountTarget } from '../account/account.store.ts'
import {
  countLivingSessions,
  endPortalSessionRow,
  type FoundPortalSession,
  insertPortalSession,
  lockByLink,
  lockByToken,
  openPortalSessionRow,
  type PortalSessionRecord,
  revokePortalSessionRow,
} from './portal-session.store.ts'

const LINK_SECONDS = 120

/** Lifetime of an opened session where the platform asks for none, in seconds. */
const DEFAULT_LIFETIME_SECONDS = 3_600

const LIVING_LIMIT = 1_000

/** Dependencies of the operations on portal sessions. */
export interface PortalSessionDeps {
  ids: IdMaker
  random: Random
  baseUrl: () => string
}

/** Appearance of the page of a link. */
export interface PortalLook {
  theme?: 'light' | 'dark'
  language?: string
}

const hashOf = (secret: string) => createHash('sha256').update(secret).digest()
const makeSecret = (random: Random, prefix: string) => `${prefix}_${random.bytes(32).toString('base64url')}`

interface PortalRequest {
  target: AccountTarget
  role: PortalRole
  externalUser: string | null
  returnUrl: string | null
  lifetimeSeconds?: number
  look: PortalLook
  caller: Caller
  now: Date
}

/**
 * Creates a portal session for an API key: a link that opens it once, within 120 s. Its permissions are those of its
 * role in the account, limited at each call to those of the key and its owner. It ends with the key. Throws 404 for an
 * account outside the caller's scope, 403 for a caller that is not an API key or lacks permissions of the role there,
 * 422 for an invalid `return_url`, 409 `limit_reached`.
 */
export async function createPortalSession(
  deps: PortalSessionDeps,
  db: Database,
  { target, role, externalUser, returnUrl, lifetimeSeconds, look, caller, now }: PortalRequest,
): Promise<{ session: PortalSessionRecord; url: string }> {
  const account = findReached(target)
  const living = await countLivingSessions(db, account, now)
  if (living === undefined) throw notFound('account')
  const apiKeyId = checkIsKey(caller)
  checkMayOpenPortal(caller, account, PORTAL_ROLES[role])
  checkReturnUrl(returnUrl)
  if (living >= LIVING_LIMIT) throw buildLimitReached()
  const link = makeSecret(deps.random, 'sbl')
  const session = await insertPortalSession(db, {
    id: deps.ids.next<'portal session'>(),
    account,
    apiKeyId,
    role,
    externalUser,
    returnUrl,
    lifetimeSeconds: lifetimeSeconds ?? DEFAULT_LIFETIME_SECONDS,
    expiresAt: findEnd(now, LINK_SECONDS, caller.expiresAt ?? null),
    linkHash: hashOf(link),
    now,
  })
  return { session, url: buildPortalUrl(deps.baseUrl(), look, link) }
}

/** The account of a path. Throws 404 outside the scope, as for one that does not exist. */
function findReached({ id, scope }: AccountTarget): AccountId {
  const account = id as AccountId
  if (!includesAccount(scope, account)) throw notFound('account')
  return account
}

/** The key of a session. A portal session is under a key too, but has no permission to create another one. */
function checkIsKey({ apiKeyId, portal }: Caller): Id<'api key'> {
  if (apiKeyId !== null && !portal) return apiKeyId as Id<'api key'>
  throw new Problem(
    'permission_denied',
    'A portal session is made with an API key of the platform, and ends with it.',
    {
      missing: { what: 'permission', permission: 'portal-session:create' },
    },
  )
}

/** The platform's own page: over TLS, or on the machine of a developer. */
function checkReturnUrl(returnUrl: string | null): void {
  if (returnUrl === null) return
  const url = URL.parse(returnUrl)
  const isLocal = url?.protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  if (url && (url.protocol === 'https:' || isLocal) && url.username === '' && url.password === '') return
  throw invalidField('return_url', 'invalid_url', 'must be an https URL without a user, or http on this machine')
}

function buildLimitReached(): Problem {
  const text = `An account has at most ${LIVING_LIMIT} portal links and sessions that have not ended. Revoke some, or wait.`
  return new Problem('limit_reached', text)
}

/** The token is in the fragment, which browsers send to no server: it is in no log and no `Referer` (RFC 9110 section 10.1.3). */
function buildPortalUrl(baseUrl: string, { theme, language }: PortalLook, link: string): string {
  const look = new URLSearchParams({ ...(theme && { theme }), ...(language && { language }) })
  return `${baseUrl}/portal${look.size > 0 ? `?${look}` : ''}#token=${link}`
}

/** After a number of seconds, or with the key. Pure. */
function findEnd(now: Date, seconds: number, keyExpiresAt: Date | null): Date {
  const end = new Date(now.getTime() + seconds * 1_000)
  return keyExpiresAt !== null && keyExpiresAt < end ? keyExpiresAt : end
}

/** Reason of a refused link, for the audit log; the answer is the same for all. */
type LinkFault = 'unknown' | 'used' | 'revoked' | 'expired' | 'key_ended'

function findLinkFault(session: FoundPortalSession | undefined, now: Date): LinkFault | undefined {
  if (!session) return 'unknown'
  if (session.openedAt !== null) return 'used'
  if (session.revokedAt !== null) return 'revoked'
  if (session.expiresAt <= now) return 'expired'
  return session.isKeyLive ? undefined : 'key_ended'
}

/** Result of a link: the session with its token, or a refusal, with the session that the link is of. */
export type OpenedPortal =
  | { session: FoundPortalSession; token: string }
  | { problem: Problem; session: FoundPortalSession | undefined }

/** Opens the session of a link: of concurrent openings one gets the token. Every refusal has the same answer. */
export async function openPortalSession(
  { random }: Pick<PortalSessionDeps, 'random'>,
  db: Database,
  { link, now }: { link: string; now: Date },
): Promise<OpenedPortal> {
  const session = await lockByLink(db, { hash: hashOf(link), now })
  const fault = findLinkFault(session, now)
  if (fault !== undefined || !session) return { problem: buildLinkInvalid(fault), session }
  const token = makeSecret(random, 'sbp')
  const expiresAt = findEnd(now, session.lifetimeSeconds, session.keyExpiresAt)
  await openPortalSessionRow(db, { id: session.id, tokenHash: hashOf(token), expiresAt, now })
  return { session: { ...session, openedAt: now, expiresAt, updatedAt: now }, token }
}

function buildLinkInvalid(fault: LinkFault = 'unknown'): Problem {
  const text =
    'This link to the portal was used, has expired or was revoked. Open the portal again where you came from.'
  return new Problem('link_invalid', text, { reason: `link_${fault}` })
}

/** Ends the session of a token when its user leaves. Undefined for an ended or unknown one. */
export async function leavePortalSession(
  db: Database,
  { token, now }: { token: string; now: Date },
): Promise<FoundPortalSession | undefined> {
  const session = await lockByToken(db, { hash: hashOf(token), now })
  if (!session || session.revokedAt !== null || session.expiresAt <= now) return undefined
  await endPortalSessionRow(db, { id: session.id, now })
  return session
}

/** Revokes a session of an account, or its link. Throws 404 outside the scope, and for one that has ended. */
export async function revokePortalSession(
  db: Database,
  { target, id, now }: { target: AccountTarget; id: string; now: Date },
): Promise<PortalSessionRecord> {
  const account = findReached(target)
  const revoked = await revokePortalSessionRow(db, { id, account, now })
  if (!revoked) throw notFound('portal session')
  return revoked
}
