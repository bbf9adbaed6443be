import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import {
  COMMAND_LEAD_MS,
  KEY_KEPT_MS,
  KEY_LEAD_MS,
  KEY_USE_MS,
  keepSigningKeys,
  loadSigningKeys,
  orderKeys,
  planScheduledKeys,
  reencryptSigningKeys,
  rotateSigningKeys,
  succeedSigningKeys,
} from './signing-key.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const at = (ms: number) => new Date(NOW.getTime() + ms)
const keyring = buildKeyring(['a'.repeat(32)], systemRandom)

test('the first key of each algorithm signs at once', () => {
  expect(planScheduledKeys([], NOW)).toEqual([
    { alg: 'ES256', activeAt: NOW },
    { alg: 'RS256', activeAt: NOW },
  ])
})

test('a successor is created one lead before a key has signed for its time, and only once', () => {
  const keys = [
    { alg: 'ES256' as const, activeAt: NOW },
    { alg: 'RS256' as const, activeAt: NOW },
  ]
  const due = at(KEY_USE_MS - KEY_LEAD_MS)
  expect(planScheduledKeys(keys, new Date(due.getTime() - 1))).toEqual([])
  const planned = planScheduledKeys(keys, due)
  expect(planned.map(({ activeAt }) => activeAt)).toEqual([at(KEY_USE_MS), at(KEY_USE_MS)])
  expect(planScheduledKeys([...keys, ...planned], due)).toEqual([])
})

test('the age of a key says nothing of another algorithm', () => {
  const due = at(KEY_USE_MS - KEY_LEAD_MS)
  const keys = [
    { alg: 'ES256' as const, activeAt: NOW },
    { alg: 'RS256' as const, activeAt: at(1) },
  ]
  expect(planScheduledKeys(keys, due)).toEqual([{ alg: 'ES256', activeAt: at(KEY_USE_MS) }])
  expect(planScheduledKeys(keys.slice(0, 1), NOW)).toEqual([{ alg: 'RS256', activeAt: NOW }])
})

test('the newest key whose time has come signs; a later one is only published', () => {
  const [old, current, next] = [-2, -1, 1].map((days) => ({ alg: 'ES256' as const, activeAt: at(days * 86_400_000) }))
  expect(orderKeys([old!, current!, next!], NOW)).toEqual([current, old, next])
})

test('processes that start at once create one key for each algorithm, and both can read them', async () => {
  await using database = await createTestDatabase()
  await Promise.all([keepSigningKeys(keyring, database.db, NOW), keepSigningKeys(keyring, database.db, NOW)])
  const keys = await loadSigningKeys(keyring, database.db, NOW)
  expect(keys.map(({ alg }) => alg)).toEqual(['ES256', 'RS256'])
  const { rows } = await database.pool.query('select private_key from oauth_signing_key')
  for (const { private_key } of rows) expect(private_key).not.toContain('"d"')
})

test('maintenance creates no key while nobody uses the provider, and successors when they are due', async () => {
  await using database = await createTestDatabase()
  expect(await succeedSigningKeys(keyring, database.db, NOW)).toBe(0)
  await keepSigningKeys(keyring, database.db, NOW)
  expect(await succeedSigningKeys(keyring, database.db, at(KEY_USE_MS - KEY_LEAD_MS))).toBe(2)
})

test('the command publishes a key before it signs, and the replaced one for a time after', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await keepSigningKeys(keyring, db, NOW)
  const [before] = await loadSigningKeys(keyring, db, NOW)
  const [kid] = await rotateSigningKeys(keyring, db, { isUrgent: false, now: NOW })
  const kidsAt = async (ms: number) =>
    (await loadSigningKeys(keyring, db, at(ms))).filter(({ alg }) => alg === 'ES256').map((key) => key.kid)
  expect(await kidsAt(COMMAND_LEAD_MS - 1)).toEqual([before?.kid, kid])
  expect(await kidsAt(COMMAND_LEAD_MS)).toEqual([kid, before?.kid])
  expect(await kidsAt(COMMAND_LEAD_MS + KEY_KEPT_MS)).toEqual([kid])
})

test('an urgent rotation leaves no key of before', async () => {
  await using database = await createTestDatabase()
  await keepSigningKeys(keyring, database.db, NOW)
  await rotateSigningKeys(keyring, database.db, { isUrgent: false, now: NOW })
  const made = await rotateSigningKeys(keyring, database.db, { isUrgent: true, now: NOW })
  const keys = await loadSigningKeys(keyring, database.db, NOW)
  expect(keys.map(({ kid }) => kid).sort()).toEqual([...made].sort())
})

test('keys under an older secret are encrypted under the first one', async () => {
  await using database = await createTestDatabase()
  await keepSigningKeys(keyring, database.db, NOW)
  const rotated = buildKeyring(['b'.repeat(32), 'a'.repeat(32)], systemRandom)
  expect(await reencryptSigningKeys(rotated, database.db)).toBe(2)
  expect(await reencryptSigningKeys(rotated, database.db)).toBe(0)
  expect(await loadSigningKeys(buildKeyring(['b'.repeat(32)], systemRandom), database.db, NOW)).toHaveLength(2)
})

test('keys that no secret opens are passed over, and an error of the program is none of them', async () => {
  await using database = await createTestDatabase()
  await keepSigningKeys(keyring, database.db, NOW)
  const foreign = buildKeyring(['c'.repeat(32)], systemRandom)
  expect(await reencryptSigningKeys(foreign, database.db)).toBe(0)
  const bug = new TypeError('a fault')
  const broken = {
    ...foreign,
    open: () => {
      throw bug
    },
  }
  await expect(reencryptSigningKeys(broken, database.db)).rejects.toBe(bug)
})
