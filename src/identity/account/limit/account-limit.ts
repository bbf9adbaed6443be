import type { AccountId, UserId } from '../../../base/id.ts'
import { notFound, Problem } from '../../../http/problem/problem.ts'
import type { RateLimiter } from '../../../http/rate-limit/rate-limit.ts'
import type { PermissionScope } from '../../../http/shape/caller.ts'
import type { InvalidatedCache } from '../../../postgres/connection/invalidated-cache.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import {
  type AccountLimits,
  type AccountUse,
  type AccountWithUse,
  findAccountUse,
  findLimitOverrides,
  type LimitName,
  type LimitOverrides,
  lockAccountUse,
  type RoomOwner,
  writeLimitOverrides,
} from './account-limit.store.ts'

/** A limit of a number of rows. */
type CountName = 'webhooks' | 'subscriptions'

/** A limit of actions in a minute. */
type RateName = 'published_per_minute' | 'replays_per_minute'

/** Free capacity of an account. Its row is locked, so concurrent requests do not take the same capacity. */
export interface Room {
  /** Throws 409 `limit_reached` when so many more rows exceed the limit. Fewer rows always fit. */
  check(name: CountName, growth: number): void
  /** Checks behind its lock that the growing row has not moved to another account. Throws 409 `conflict`. */
  checkOwner(owner: AccountId | null): void
}

/** Limits of accounts, for callers who hold their permission for some accounts only. */
export interface AccountLimiter {
  /** Locks the account until the transaction ends. Undefined when there is none. */
  lockRoom(db: Database, owner: RoomOwner): Promise<Room | undefined>
  /** Counts an action for each of `accounts`, all or nothing, mostly without a round trip. Throws 429. */
  take(db: Database, name: RateName, accounts: readonly (AccountId | null)[]): Promise<void>
}

/** Dependencies of the limits. */
export interface AccountLimiterDeps {
  /** The limits of an account without its own. */
  defaults: AccountLimits
  /** The limits of accounts, checked for each publication of a tenant. */
  cache: InvalidatedCache<AccountLimits>
  limiter: Pick<RateLimiter, 'take'>
}

/** The limits that hold for an account. Pure. */
function mergeLimits(defaults: AccountLimits, own: LimitOverrides): AccountLimits {
  const set = Object.entries(own).filter(([, value]) => value !== null)
  return { ...defaults, ...Object.fromEntries(set) }
}

/** Builds the limits of accounts. */
export function buildAccountLimiter({ defaults, cache, limiter }: AccountLimiterDeps): AccountLimiter {
  const findLimits = (db: Database, account: AccountId) =>
    cache.read(account, async () => mergeLimits(defaults, await findLimitOverrides(db, account)))

  return {
    lockRoom: async (db, owner) => {
      const found = await lockAccountUse(db, owner)
      return found && buildRoom(found.account, mergeLimits(defaults, found.own), found.use)
    },
    take: async (db, name, accounts) => {
      const counts = countEach(accounts)
      const asked = []
      for (const [account, hits] of counts) {
        const perMinute = (await findLimits(db, account))[name]
        asked.push({ bucket: `${name}:${account}`, hits, perMinute, account })
      }
      const exceeded = limiter.take(asked)
      if (exceeded) throw buildRateProblem(name, exceeded.charge, exceeded.resetSeconds)
    },
  }
}

function countEach(accounts: readonly (AccountId | null)[]): Map<AccountId, number> {
  const counts = new Map<AccountId, number>()
  for (const account of accounts) if (account !== null) counts.set(account, (counts.get(account) ?? 0) + 1)
  return counts
}

function buildRoom(account: AccountId, limits: AccountLimits, use: AccountUse): Room {
  return {
    check: (name, growth) => {
      const value = limits[name]
      if (growth <= 0 || use[name] + growth <= value) return
      const text = `The limit "${name}" of this account is ${value}, and it has ${use[name]}. Delete some, or ask an operator for more.`
      throw new Problem('limit_reached', text, { limit: { name, value, account } })
    },
    checkOwner: (owner) => {
      if (owner === account) return
      throw new Problem(
        'conflict',
        'The webhook moved to another account during this request. Read it again, then repeat.',
      )
    },
  }
}

function buildRateProblem(
  name: RateName,
  { account, hits, perMinute }: { account: AccountId; hits: number; perMinute: number },
  resetSeconds: number,
): Problem {
  const rest =
    hits > perMinute
      ? `This request counts ${hits}: send less at once.`
      : `It is spent, or has no room for the ${hits} of this request. Go on in ${resetSeconds} s.`
  return new Problem('rate_limited', `The limit "${name}" of this account is ${perMinute}. ${rest}`, {
    headers: { 'retry-after': String(resetSeconds) },
    limit: { name, value: perMinute, account },
  })
}

/** The limits of an account, its own ones, and its use. */
export interface LimitStanding extends AccountWithUse {
  limits: AccountLimits
}

/** Dependencies of the operations on the limits of an account. */
export interface AccountLimitDeps {
  accountDefaults: AccountLimits
}

/** The limits of an account within `scope`. Throws 404. */
export async function loadLimits(
  { accountDefaults }: AccountLimitDeps,
  db: Database,
  { id, scope }: { id: string; scope: PermissionScope },
): Promise<LimitStanding> {
  const found = scope === 'all' || scope.includes(id as AccountId) ? await findAccountUse(db, { id }) : undefined
  if (!found) throw notFound('account')
  return { ...found, limits: mergeLimits(accountDefaults, found.own) }
}

/** Sets limits of an account; null means the default, omitted ones stay, and so do rows beyond them. Throws 404. */
export async function changeLimits(
  { accountDefaults }: AccountLimitDeps,
  db: Database,
  input: { account: string; change: Partial<LimitOverrides>; by: UserId; now: Date },
): Promise<LimitStanding & { before: LimitStanding; isChanged: boolean }> {
  const found = await lockAccountUse(db, { account: input.account })
  if (!found) throw notFound('account')
  const own = { ...found.own, ...input.change }
  const isChanged = (Object.keys(own) as LimitName[]).some((name) => own[name] !== found.own[name])
  if (isChanged) await writeLimitOverrides(db, { ...own, account: found.account, by: input.by, now: input.now })
  const updatedAt = isChanged ? input.now : found.updatedAt
  const before = { ...found, limits: mergeLimits(accountDefaults, found.own) }
  return { ...found, own, limits: mergeLimits(accountDefaults, own), updatedAt, before, isChanged }
}
