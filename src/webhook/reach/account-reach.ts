import type { AccountId, WebhookId } from '../../base/id.ts'
import { buildAccountMissing, buildScopeMissing } from '../../http/pipeline/caller-refusal.ts'
import { notFound, Problem } from '../../http/problem/problem.ts'
import { includesAccount, type PermissionScope } from '../../http/shape/caller.ts'
import type { RoomOwner } from '../../identity/account/limit/account-limit.store.ts'
import type { AccountLimiter, Room } from '../../identity/account/limit/account-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { splitEntries, UNKNOWN } from '../envelope/event-entry.ts'
import { countSubscriptions } from '../event-set/subscription.store.ts'
import { buildUnknownWebhook } from '../event-set/subscription.ts'
import { isOwnedBy, listHiddenTypes, type OwnedKind } from './account-reach.store.ts'

/** A request of a caller whose permission may be limited to some accounts. */
interface Asked {
  db: Database
  params: { id: string }
  scope: PermissionScope
}

const NOUNS: Record<OwnedKind, Parameters<typeof notFound>[0]> = {
  webhook: 'webhook',
  'webhook, deleted or not': 'webhook',
  subscription: 'subscription',
  dispatch: 'dispatch',
  job: 'replay job',
}

/**
 * Checks the row of a webhook that a request names (docs/contract/identity.md#webhooks-of-an-account-role): for a
 * caller with an account role, rows of other accounts and of global webhooks are a 404. A webhook that an administrator
 * moves to another account at the same moment counts under its former one.
 */
async function checkWithin(kind: OwnedKind, { db, params: { id }, scope }: Asked): Promise<void> {
  const accounts = scope === 'all' ? null : scope
  if (!(await isOwnedBy(db, kind, { id, accounts }))) throw notFound(NOUNS[kind])
}

/** The look-up of the row that a change names, by `checkWithin`. */
export const rowWithin = (kind: OwnedKind) => ({
  find: (_deps: unknown, request: Asked) => checkWithin(kind, request),
  neededBy: 'scope' as const,
})

/** Checks a row that is also loaded: `load` throws not-found itself. */
export async function loadWithin<Found>(
  kind: OwnedKind,
  request: Asked,
  load: (db: Database, id: string) => Promise<Found>,
): Promise<Found> {
  if (request.scope !== 'all') await checkWithin(kind, request)
  return load(request.db, request.params.id)
}

/** Locks the use of an account of a limited caller (docs/contract/delivery.md#limits-of-an-account). */
export async function lockRoom(
  deps: { accountLimits: Pick<AccountLimiter, 'lockRoom'> },
  db: Database,
  { scope, ...owner }: RoomOwner & { scope: PermissionScope },
): Promise<Room | undefined> {
  return scope === 'all' ? undefined : deps.accountLimits.lockRoom(db, owner)
}

/** Checks that an account has room for a locked webhook that moves to it, with its subscriptions. Throws 409. */
export async function checkRoomForMoved(db: Database, room: Room, webhook: WebhookId): Promise<void> {
  room.check('webhooks', 1)
  room.check('subscriptions', await countSubscriptions(db, webhook))
}

/** Checks that a caller may give a webhook this owner: with an account role, one of its accounts. Throws 403. */
export function checkOwnerInScope(
  scope: PermissionScope,
  { is_global: isGlobal, account }: { is_global?: boolean; account?: string | null },
  permission: string,
): void {
  if (scope === 'all') return
  if (isGlobal) throw buildScopeMissing('A global webhook', permission)
  if (account && !includesAccount(scope, account as AccountId)) throw buildAccountMissing(permission, account)
}

/** Checks that a limited caller may subscribe to these types: visible ones, and those it has. Throws a 422 at each. */
export async function checkMaySubscribe(
  db: Database,
  scope: PermissionScope,
  input: { webhook: string | null; events: readonly string[]; pathOf: (index: number) => string },
): Promise<void> {
  if (scope === 'all') return
  const hidden = await listHiddenTypes(db, { webhook: input.webhook, ...splitEntries(input.events) })
  const errors = input.events.flatMap((entry, index) =>
    hidden.has(entry) ? [{ path: input.pathOf(index), ...UNKNOWN }] : [],
  )
  const [first] = errors
  if (first) throw new Problem('validation_failed', `${first.path}: ${first.message}`, { errors })
}

/** Checks that a new subscription of a caller with an account role is within its accounts. Throws a 422. */
export async function checkNewSubscription(
  db: Database,
  scope: PermissionScope,
  { webhook, event }: { webhook: string; event: string },
): Promise<void> {
  if (scope === 'all') return
  if (!(await isOwnedBy(db, 'webhook, deleted or not', { id: webhook, accounts: scope }))) throw buildUnknownWebhook()
  await checkMaySubscribe(db, scope, { webhook, events: [event], pathOf: () => 'event' })
}
