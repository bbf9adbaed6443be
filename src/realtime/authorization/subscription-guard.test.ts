import pino from 'pino'
import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId, UserId } from '../../base/id.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { CHECKED_AT_ONCE, ENDED_AT_ONCE } from './access-check.ts'
import { buildSubscriptionGuard, COLLECT_MS, RETRY_MS } from './subscription-guard.ts'

const ACCOUNT = 'account' as AccountId
const CHANNELS = new Map([['private-account-x', ACCOUNT]])
const name = (n: number) => `user-${n}` as UserId

const memberOf = (userId: UserId): Caller => ({
  ...{ userId, sessionId: null, apiKeyId: null, clientId: null, accountId: null, ceiling: null, keyAccount: null },
  ...{ patterns: [], accountPatterns: ['realtime:auth'], membershipPatterns: [], accounts: [ACCOUNT], proof: null },
})

/** A guard over `users` with a stored grant each; `gone` are disabled, and their connections are ended by `end`. */
function buildFixture(users: readonly UserId[], end: (userId: UserId) => Promise<void> = async () => {}) {
  const clock = buildManualClock()
  const gone = new Set<UserId>()
  const ended: UserId[] = []
  const reads: number[] = []
  const lists: number[] = []
  let pages = async function* (): AsyncIterable<readonly UserId[]> {
    for (let first = 0; first < users.length; first += CHECKED_AT_ONCE)
      yield users.slice(first, first + CHECKED_AT_ONCE)
  }
  const guard = buildSubscriptionGuard({
    clock,
    logger: pino({ level: 'silent' }),
    readCallers: async (asked) => {
      reads.push(asked.length)
      return new Map(asked.filter((request) => !gone.has(request)).map((request) => [request, memberOf(request)]))
    },
    grants: {
      add: async () => {},
      list: async (asked) => new Map(asked.map((request) => [request, CHANNELS])),
      listUsers: () => {
        lists.push(users.length)
        return pages()
      },
      forget: async (userId) => void ended.push(userId),
      findTokens: async () => [],
      listTokens: async function* () {},
      extendToken: async () => {},
      endTokens: async () => {},
    },
    readTokens: async () => new Map(),
    ends: { endConnections: end },
  })
  /** Lets the notes be collected and what follows be done. */
  const settle = async () => {
    clock.advance(COLLECT_MS)
    await guard.settled()
  }
  return { clock, gone, ended, reads, lists, guard, settle, page: (next: typeof pages) => (pages = next) }
}

test('a note for all reads many users with one statement each, and ends what was lost some at a time', async () => {
  let [running, most] = [0, 0]
  const users = Array.from({ length: 1_200 }, (_, n) => name(n))
  const fixture = buildFixture(users, async () => {
    running += 1
    most = Math.max(most, running)
    await new Promise(setImmediate)
    running -= 1
  })
  for (let n = 0; n < 1_200; n += 12) fixture.gone.add(name(n))
  fixture.guard.invalidate('*')
  await fixture.settle()
  expect(fixture.reads).toEqual([500, 500, 200])
  expect(new Set(fixture.ended)).toEqual(fixture.gone)
  expect(most).toBe(ENDED_AT_ONCE)
})

test('a user who is named loses the access while the look at all users is still under way', async () => {
  const fixture = buildFixture([name(1)])
  const held = Promise.withResolvers<void>()
  fixture.page(async function* () {
    await held.promise
    yield [name(1)]
  })
  fixture.guard.invalidate('*')
  fixture.clock.advance(COLLECT_MS)
  fixture.gone.add(name(2))
  fixture.guard.invalidate('u:user-2')
  fixture.clock.advance(COLLECT_MS)
  await expect.poll(() => fixture.ended).toEqual([name(2)])
  held.resolve()
  await fixture.guard.settled()
  expect(fixture.reads).toEqual([1, 1])
})

test('notes for all that come during a look at all lead to one more, and no more', async () => {
  const fixture = buildFixture([name(1)])
  const held = Promise.withResolvers<void>()
  fixture.page(async function* () {
    await held.promise
    yield [name(1)]
  })
  fixture.guard.invalidate('*')
  fixture.clock.advance(COLLECT_MS)
  await expect.poll(() => fixture.lists).toHaveLength(1)
  for (let n = 0; n < 5; n += 1) fixture.guard.invalidate('*')
  held.resolve()
  await fixture.guard.settled()
  expect(fixture.lists).toHaveLength(2)
})

test('users whose connections could not be ended are tried again together, and the others are not', async () => {
  const tries: UserId[] = []
  const fixture = buildFixture([name(1), name(2), name(3)], async (userId) => {
    tries.push(userId)
    if (userId !== name(2) && tries.length <= 3) throw new Error('the provider is away')
  })
  for (const n of [1, 2, 3]) fixture.gone.add(name(n))
  fixture.guard.invalidate('*')
  await fixture.settle()
  expect(fixture.ended).toEqual([name(2)])
  fixture.clock.advance(RETRY_MS)
  await new Promise(setImmediate)
  await fixture.settle()
  expect(tries.slice(3)).toEqual([name(1), name(3)])
  expect(fixture.reads).toEqual([3, 2])
})

test('a look at all users that breaks off begins again', async () => {
  const fixture = buildFixture([name(1)])
  fixture.gone.add(name(1))
  let tries = 0
  fixture.page(async function* () {
    tries += 1
    if (tries === 1) throw new Error('the database is away')
    yield [name(1)]
  })
  fixture.guard.invalidate('*')
  await fixture.settle()
  expect(fixture.ended).toEqual([])
  fixture.clock.advance(RETRY_MS)
  await new Promise(setImmediate)
  await fixture.settle()
  expect(fixture.ended).toEqual([name(1)])
})
