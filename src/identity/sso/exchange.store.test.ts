import { randomBytes, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { SessionId, UserId } from '../../base/id.ts'
import { claimHandshake, deleteExpiredNonces } from './exchange.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const LATER = new Date(NOW.getTime() + 60_000)

const database = await openForFile(createTestDatabase())

/** A session of a new user, with these columns. */
async function open(columns: object = {}, userColumns: object = {}) {
  const [userId, sessionId] = [randomUUID() as string as UserId, randomUUID() as string as SessionId]
  const at = { created_at: NOW, updated_at: NOW }
  const user = { document_id: userId, email: `${userId}@example.test`, ...at, ...userColumns }
  await database.db.insertInto('user').values(user).execute()
  const session = { document_id: sessionId, user: userId, expires_at: LATER, auth_time: NOW, last_used_at: NOW, ...at }
  await database.db
    .insertInto('session')
    .values({ ...session, ...columns })
    .execute()
  return { userId, sessionId }
}

const claim = (session: Awaited<ReturnType<typeof open>>, nonceHash: Buffer) =>
  claimHandshake(database.db, { ...session, nonceHash, expiresAt: LATER, now: NOW })

test('a nonce is taken once, with a session that can be continued', async () => {
  const nonceHash = randomBytes(32)
  const session = await open()
  expect(await claim(session, nonceHash)).toMatchObject({ isClaimed: true, session: { id: session.sessionId } })
  expect(await claim(session, nonceHash)).toMatchObject({ isClaimed: false, isUserActive: true })
})

test.each([
  ['is revoked', () => open({ revoked_at: NOW })],
  ['has expired', () => open({ expires_at: NOW })],
  ['was opened by a handshake', async () => open({ parent: (await open()).sessionId })],
  ['is for an app', () => open({ client_id: 'app', scope: 'openid' })],
  ['has a disabled user', () => open({}, { is_actived: false })],
  ['has a deleted user', () => open({}, { deleted_at: NOW })],
])('a session that %s takes no nonce: it is left for one that can be continued', async (_what, refused) => {
  const nonceHash = randomBytes(32)
  expect(await claim(await refused(), nonceHash)).toMatchObject({ isClaimed: false })
  expect(await claim(await open(), nonceHash)).toMatchObject({ isClaimed: true })
})

test('the session of another user is none', async () => {
  const [session, other] = [await open(), await open()]
  expect(await claim({ ...session, userId: other.userId }, randomBytes(32))).toBeUndefined()
})

test('nonces of tokens that expired before an instant are deleted in batches, the oldest first, and no others', async () => {
  await database.pool.query('delete from sso_nonce')
  for (const ms of [-1, -3, -2, 0])
    await database.pool.query('insert into sso_nonce (nonce_hash, expires_at) values ($1, $2)', [
      Buffer.from(`${ms}`),
      new Date(NOW.getTime() + ms),
    ])
  const read = async () =>
    (await database.pool.query('select nonce_hash from sso_nonce order by expires_at')).rows.map((row) =>
      row.nonce_hash.toString(),
    )
  expect(await deleteExpiredNonces(database.db, NOW, 2)).toBe(2)
  expect(await read()).toEqual(['-1', '0'])
  // A row that another sweep deletes is left to it.
  const other = await database.pool.connect()
  try {
    await other.query('begin')
    await other.query('select from sso_nonce for update')
    expect(await deleteExpiredNonces(database.db, NOW, 2)).toBe(0)
  } finally {
    await other.query('rollback')
    other.release()
  }
  expect(await deleteExpiredNonces(database.db, NOW, 2)).toBe(1)
  expect(await read()).toEqual(['0'])
})
