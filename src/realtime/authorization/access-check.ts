import type { Logger } from 'pino'
import type { UserId } from '../../base/id.ts'
import { type Caller, includesAccount } from '../../http/shape/caller.ts'
import { listJoinable } from './channel-access.ts'
import type { GrantedAccess, GrantedChannels } from './granted-access.ts'

/** Ends subscriptions that a user may no longer have. */
export interface SubscriptionEnds {
  /** Ends one subscription; undefined if the provider can only close whole connections. */
  endSubscription?: (subscription: { userId: UserId; channel: string }) => Promise<void>
  endConnections: (userId: UserId) => Promise<void>
}

export interface AccessCheckDeps {
  /** Current permissions of these users; disabled and deleted ones are omitted. */
  readCallers: (users: readonly UserId[]) => Promise<ReadonlyMap<UserId, Caller>>
  grants: GrantedAccess
  ends: SubscriptionEnds
  logger: Logger
}

/** Users that are read with one statement. */
export const CHECKED_AT_ONCE = 500

/** Users whose subscriptions are ended at the same time. */
export const ENDED_AT_ONCE = 8

interface Loss {
  userId: UserId
  channels: string[]
  /** A disabled or deleted user keeps no connection. */
  isGone: boolean
}

/** Channels that a user has lost; undefined for none. Pure. */
function findLoss(userId: UserId, channels: GrantedChannels, caller: Caller | undefined): Loss | undefined {
  const scope = caller ? listJoinable(caller) : []
  const lost = [...channels].filter(([, account]) => !includesAccount(scope, account)).map(([channel]) => channel)
  return caller && lost.length === 0 ? undefined : { userId, channels: lost, isGone: !caller }
}

/** The users whose subscriptions could not be ended, and the fault of the first. */
export interface FailedEnds {
  users: UserId[]
  error: unknown
}

/** Ends lost authorizations of users. Returns those whose check failed; undefined for none. `signal` aborts it. */
export async function checkAccess(
  deps: AccessCheckDeps,
  users: readonly UserId[],
  signal: AbortSignal,
): Promise<FailedEnds | undefined> {
  const failed: FailedEnds = { users: [], error: undefined }
  for (let first = 0; first < users.length && !signal.aborted; first += CHECKED_AT_ONCE) {
    const granted = await deps.grants.list(users.slice(first, first + CHECKED_AT_ONCE))
    const callers = await deps.readCallers([...granted.keys()])
    const losses = [...granted].flatMap(([user, channels]) => findLoss(user, channels, callers.get(user)) ?? [])
    const next = losses.values()
    const endNext = async () => {
      for (const loss of next) {
        if (signal.aborted) return
        await endLoss(deps, loss).catch((error: unknown) => {
          failed.error ??= error
          failed.users.push(loss.userId)
        })
      }
    }
    await Promise.all(Array.from({ length: Math.min(ENDED_AT_ONCE, losses.length) }, endNext))
  }
  return failed.users.length > 0 ? failed : undefined
}

async function endLoss({ ends, grants, logger }: AccessCheckDeps, { userId, channels, isGone }: Loss): Promise<void> {
  if (isGone || !ends.endSubscription) await ends.endConnections(userId)
  else for (const channel of channels) await ends.endSubscription({ userId, channel })
  await grants.forget(userId, channels)
  logger.info({ user: userId, channels: channels.length }, 'realtime subscriptions ended: the user lost its access')
}
