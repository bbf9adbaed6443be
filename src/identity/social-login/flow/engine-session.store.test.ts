import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter } from '../../../../test/harness/database/identity-rows.ts'
import type { SessionId } from '../../../base/id.ts'
import { buildKeyring } from '../../../base/keyring.ts'
import { systemRandom } from '../../../base/random.ts'
import { type Database, inTransaction } from '../../../postgres/statement/database.ts'
import { deleteEngineSession, findSealedEngineToken, insertEngineSession } from './engine-session.store.ts'
import { findEngineToken, keepEngineToken } from './engine-session.ts'
import {
  deleteExpiredLoginCodes,
  findLinkIdentity,
  insertLoginCode,
  type LoginCode,
  takeLoginCode,
} from './login-code.store.ts'

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
  const find = (id: SessionId, now = MADE_AT) => findSealedEngineToken(db, { sessionId: id, now })
  expect([await find(one), await find(other)]).toEqual(['of one', 'of other'])
  expect([await find(one, madeAfter(9)), await find(one, madeAfter(10))]).toEqual(['of one', undefined])
  await write((tx) => deleteEngineSession(tx, { sessionId: one }))
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
  expect(await findSealedEngineToken(db, { sessionId, now: MADE_AT })).not.toContain('a token')
  await database.pool.query('update engine_session set session = $1', [other])
  await expect(findEngineToken(deps, db, { sessionId: other, now: MADE_AT })).rejects.toThrow()
})

test('a code is taken once, for its purpose alone, and its identity is found by its user until it expires', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const rows = buildIdentityRows(db)
  const [userId, other] = [await rows.user(), await rows.user()]
  const keep = async (code: LoginCode) => {
    const hash = randomBytes(32)
    await inTransaction(db, (tx) => insertLoginCode(tx, hash, code, MADE_AT))
    return hash
  }
  const expiresAt = madeAfter(10)
  const signIn = {
    purpose: 'sign-in',
    userId,
    codeChallenge: 'c',
    isNewUser: true,
    connection: null,
    expiresAt,
  } as const
  const identity = { provider: 'google', sub: '1' } as unknown as Extract<LoginCode, { purpose: 'link' }>['identity']
  const link = { purpose: 'link', userId, identity, expiresAt } as const
  const [first, beside, second, foreign] = [
    await keep(signIn),
    await keep({ ...signIn, isNewUser: false, codeChallenge: 'd' }),
    await keep(link),
    await keep({ ...link, userId: other }),
  ]
  const found = (hash: Buffer, ms: number, of = userId) =>
    findLinkIdentity(db, { codeHash: hash, userId: of, now: madeAfter(ms) })
  expect([await found(second, 9), await found(foreign, 9, other)]).toEqual([identity, identity])
  expect([await found(second, 10), await found(foreign, 9), await found(first, 9)]).toEqual(Array(3).fill(undefined))

  const take = (hash: Buffer, purpose: LoginCode['purpose']) => takeLoginCode(db, hash, purpose)
  expect([await take(first, 'link'), await take(second, 'sign-in')]).toEqual([undefined, undefined])
  expect(await take(first, 'sign-in')).toEqual({ ...signIn, createdAt: MADE_AT })
  expect(await take(first, 'sign-in')).toBeUndefined()
  expect(await take(second, 'link')).toEqual(link)
  expect(await take(beside, 'sign-in')).toMatchObject({ isNewUser: false, codeChallenge: 'd' })
  expect([
    await deleteExpiredLoginCodes(db, expiresAt, 9),
    await deleteExpiredLoginCodes(db, madeAfter(11), 9),
  ]).toEqual([...[0, 1]])
})
