import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter } from '../../../../test/harness/database/identity-rows.ts'
import type { SessionId } from '../../../base/id.ts'
import { buildKeyring } from '../../../base/keyring.ts'
import { systemRandom } from '../../../base/random.ts'
import { type Database, inTransaction } from '../../../postgres/statement/database.ts'
import { deleteEngineSession, findSealedEngineToken, insertEngineSession } from './engine-session.store.ts'
import { findEngineToken, keepEngineToken } from './engine-session.ts'

test('the token of a session is found until it expires or is deleted, and that of another session is not', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const rows = buildIdentityRows(db)
  const userId = await rows.user()
  const [one, other] = [await rows.session(userId), await rows.session(userId)]
  const write = (act: (tx: Database) => Promise<void>) => inTransaction(db, act)
  for (const [sessionId, token] of [
    [one, 'of one'],
    [other, 'of other'],
  ] as [SessionId, string][])
    await write((tx) => insertEngineSession(tx, { sessionId, userId, token, expiresAt: madeAfter(10) }))
  const find = (id: SessionId, now = MADE_AT) => findSealedEngineToken(db, id, now)
  expect([await find(one), await find(other)]).toEqual(['of one', 'of other'])
  expect([await find(one, madeAfter(9)), await find(one, madeAfter(10))]).toEqual(['of one', undefined])
  await write((tx) => deleteEngineSession(tx, one))
  expect([await find(one), await find(other)]).toEqual([undefined, 'of other'])
})

test('the token of a session is kept sealed for it, and opens for no other', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const deps = { keyring: buildKeyring(['a'.repeat(32)], systemRandom) }
  const rows = buildIdentityRows(db)
  const userId = await rows.user()
  const [sessionId, other] = [await rows.session(userId), await rows.session(userId)]
  await inTransaction(db, (tx) => keepEngineToken(deps, tx, { sessionId, userId, token: 'a token', now: MADE_AT }))
  expect(await findEngineToken(deps, db, { sessionId, now: MADE_AT })).toBe('a token')
  expect(await findEngineToken(deps, db, { sessionId: other, now: MADE_AT })).toBeUndefined()
  expect(await findSealedEngineToken(db, sessionId, MADE_AT)).not.toContain('a token')
  await database.pool.query('update engine_session set session = $1', [other])
  await expect(findEngineToken(deps, db, { sessionId: other, now: MADE_AT })).rejects.toThrow()
})
