import type { AccountId } from '../../base/id.ts'
import { Problem } from '../../http/problem/problem.ts'
import { type Caller, includesAccount } from '../../http/shape/caller.ts'
import { checkAccountExists } from '../../identity/account/account.ts'
import { nameToken } from '../../identity/caller/token-life.ts'
import { loadUser } from '../../identity/user/user.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type ChannelSubject, parseChannel, parsePresenceChannel } from '../channel/channel.ts'
import type { ProviderApp } from '../provider/provider-settings.ts'
import { signSubscription, signUser } from '../provider/provider-signature.ts'
import { listJoinable } from './channel-access.ts'
import type { GrantedSubscription } from './granted-access.ts'
import type { SubscriptionGuard } from './subscription-guard.ts'

/** Finds the account of a contract; undefined for one that does not exist. */
export type FindContractAccount = (db: Database, id: string) => Promise<AccountId | undefined>

export interface AuthorizationDeps {
  /** Undefined in log-only mode. */
  findApp: () => ProviderApp | undefined
  guard: Pick<SubscriptionGuard, 'remember'> | undefined
  findContractAccount: FindContractAccount
  countAuthorization: (answer: 'granted' | 'refused') => void
}

/** A connection of a client, and the channel that it wants to join. */
export interface SubscriptionRequest {
  socketId: string
  channel: string
  caller: Caller
}

/**
 * Authorizes a subscription (docs/contract/realtime.md#channel-authorization). Throws 403 for every channel that the
 * caller may not join, also of an unknown account; 503 in log-only mode. A membership is cached with the caller; an
 * uncached contract is one statement.
 */
export async function authorizeSubscription(
  deps: AuthorizationDeps,
  db: Database,
  { socketId, channel, caller }: SubscriptionRequest,
): Promise<{ auth: string }> {
  const app = requireApp(deps)
  await grantSubscription(deps, db, { socketId, channel, caller, subject: parseChannel(channel) })
  return { auth: signSubscription(app, { socketId, channel }) }
}

/** Authorizes a member of a presence channel, named as the user (docs/contract/realtime.md#presence). */
export async function authorizeMember(
  deps: AuthorizationDeps,
  db: Database,
  { socketId, channel, caller, now }: SubscriptionRequest & { now: Date },
): Promise<{ auth: string; channel_data: string }> {
  const app = requireApp(deps)
  await grantSubscription(deps, db, { socketId, channel, caller, subject: parsePresenceChannel(channel) })
  const { name } = await loadUser(db, caller.userId)
  const channelData = JSON.stringify({ user_id: caller.userId, user_info: { name, since: now.toISOString() } })
  return { auth: signSubscription(app, { socketId, channel, channelData }), channel_data: channelData }
}

async function grantSubscription(
  deps: AuthorizationDeps,
  db: Database,
  { socketId, channel, caller, subject }: SubscriptionRequest & { subject: ChannelSubject | undefined },
): Promise<void> {
  const { account } = await requireJoinable(deps, db, { subject, caller })
  await deps.guard?.remember({ userId: caller.userId, channel, account, socketId, token: describeToken(caller) })
  deps.countAuthorization('granted')
}

/** Signs the user of a connection (docs/contract/realtime.md#user-authentication). Throws 503 in log-only mode. */
export async function authenticateConnection(
  deps: Pick<AuthorizationDeps, 'findApp' | 'guard'>,
  { socketId, caller }: Omit<SubscriptionRequest, 'channel'>,
): Promise<{ auth: string; user_data: string }> {
  const app = requireApp(deps)
  const { userId } = caller
  await deps.guard?.remember({ userId, channel: null, account: null, socketId, token: describeToken(caller) })
  const userData = JSON.stringify({ id: caller.userId })
  return { auth: signUser(app, { socketId, userData }), user_data: userData }
}

/** The session or API key of an authorization, which ends with it. */
function describeToken(caller: Caller): GrantedSubscription['token'] {
  const name = nameToken(caller)
  return name && { name, endsAt: caller.expiresAt ?? null }
}

/** The application that clients connect to. Throws 503 in log-only mode. */
export function requireApp({ findApp }: Pick<AuthorizationDeps, 'findApp'>): ProviderApp {
  const app = findApp()
  if (!app) throw new Problem('realtime_unavailable', 'Realtime is not configured here, so there are no channels.')
  return app
}

/** The channel with its account, if the caller may join it. Throws 403 for every other one. */
export async function requireJoinable(
  deps: AuthorizationDeps,
  db: Database,
  { subject, caller }: { subject: ChannelSubject | undefined; caller: Caller },
): Promise<{ subject: ChannelSubject; account: AccountId }> {
  const account = subject && (await findJoinable(deps, db, { subject, caller }))
  if (subject && account !== undefined) return { subject, account }
  deps.countAuthorization('refused')
  throw new Problem(
    'permission_denied',
    'You have no access to this channel: it belongs to an account of which you are not a member.',
  )
}

async function findJoinable(
  deps: AuthorizationDeps,
  db: Database,
  { subject, caller }: { subject: ChannelSubject; caller: Caller },
): Promise<AccountId | undefined> {
  const scope = listJoinable(caller)
  if (subject.kind === 'account' && scope === 'all') return checkExists(db, subject.id as AccountId)
  const account =
    subject.kind === 'contract' ? await deps.findContractAccount(db, subject.id) : (subject.id as AccountId)
  return account !== undefined && includesAccount(scope, account) ? account : undefined
}

async function checkExists(db: Database, account: AccountId): Promise<AccountId | undefined> {
  try {
    return await checkAccountExists(db, account)
  } catch (error) {
    if (error instanceof Problem && error.status < 500) return undefined
    throw error
  }
}
