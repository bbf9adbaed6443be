import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { MADE_AT } from '../../../test/harness/database/identity-rows.ts'
import { countTraffic } from '../../../test/harness/plan/round-trips.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { buildProviderSource, KEYS_CACHE_MS, type ProviderSourceDeps } from './provider-source.ts'

test('the keys are read once in ten seconds, and the provider is built again only for other keys', async () => {
  await using database = await createTestDatabase()
  let nowMs = MADE_AT.getTime()
  const watched: unknown[] = []
  // What the library reads at its start.
  const deps = {
    ...{ db: database.db, keyring: buildKeyring(['a secret of at least thirty-two characters'], systemRandom) },
    ...{ cookieKeys: ['key'], cookies: { isSecure: true, isHostBound: true }, pages: {}, isRegistrationOpen: true },
    ...{ machineClock: { now: () => nowMs }, baseUrl: () => 'https://id.example.test' },
    ...{ revocations: {}, watch: (provider: unknown) => watched.push(provider) },
  } as unknown as ProviderSourceDeps
  const source = buildProviderSource(deps)
  expect(source.provider()).toBeUndefined()

  const [first, beside] = await Promise.all([source.current(), source.current()])
  expect(beside).toBe(first)
  expect(watched).toEqual([source.provider()])
  expect(source.provider()?.issuer).toBe('https://id.example.test/api/v3/oauth')

  const readAfter = async (ms: number) => {
    nowMs += ms
    const counting = countTraffic(database.pool)
    expect(await source.current()).toBe(first)
    return counting.stop().roundTrips > 0
  }
  expect([await readAfter(KEYS_CACHE_MS - 1), await readAfter(1), await readAfter(1)]).toEqual([false, true, false])
  expect([await readAfter(KEYS_CACHE_MS - 2), await readAfter(1)]).toEqual([false, true])

  await database.pool.query('delete from oauth_signing_key')
  nowMs += KEYS_CACHE_MS
  expect(await source.current()).not.toBe(first)
  expect(watched).toHaveLength(2)
  expect(source.provider()).toBe(watched[1])
})
