import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { untilWaiting } from '../../../../test/harness/plan/lock-waits.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import { hashStateId } from '../../grant/state-id.ts'
import { deleteTokenFamily, deleteTokenFamilyModel, findState, upsertState } from './state.store.ts'
import { writeStateBatch } from './state-batch.store.ts'

const FAMILY = 'grant.family'

const buildRow = (model: string, id: string) => ({
  model,
  idHash: hashStateId(id),
  payload: {},
  grantId: FAMILY,
  consent: null,
  uid: null,
  userCodeHash: null,
  expiresAt: new Date(Date.now() + 60_000),
})

test('a redemption waits for the end of its family before it holds the code, so that neither waits for the other', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await upsertState(db, buildRow('Grant', FAMILY))
  await upsertState(db, buildRow('AuthorizationCode', 'code'))
  const { redeemed } = await inTransaction(db, async (tx) => {
    await deleteTokenFamilyModel(tx, FAMILY, 'Grant')
    const redeemed = writeStateBatch(db, {
      spent: { model: 'AuthorizationCode', idHash: hashStateId('code'), consumedBy: null, answer: null },
      rows: [{ ...buildRow('AccessToken', 'token'), tokenFamilyHash: hashStateId(FAMILY) }],
      browser: null,
      now: new Date(),
    })
    await untilWaiting(db, 1)
    await deleteTokenFamily(tx, FAMILY)
    return { redeemed }
  })
  expect(await redeemed).toBe(false)
  const key = { model: 'AccessToken', idHash: hashStateId('token'), now: new Date() }
  expect(await findState(db, key)).toBeUndefined()
})

test('what was spent before, or never was, writes no row', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const now = new Date()
  const redeem = (code: string, token: string) =>
    writeStateBatch(db, {
      spent: { model: 'AuthorizationCode', idHash: hashStateId(code), consumedBy: null, answer: null },
      rows: [{ ...buildRow('AccessToken', token), tokenFamilyHash: hashStateId(FAMILY) }],
      browser: null,
      now,
    })
  const find = (id: string) => findState(db, { model: 'AccessToken', idHash: hashStateId(id), now })
  await upsertState(db, buildRow('Grant', FAMILY))
  await upsertState(db, buildRow('AuthorizationCode', 'code'))
  await upsertState(db, buildRow('AuthorizationCode', 'other'))
  expect([await redeem('code', 'first'), await redeem('code', 'second'), await redeem('none', 'third')]).toEqual([
    ...[true, false, false],
  ])
  expect(await find('first')).toBeDefined()
  expect([await find('second'), await find('third')]).toEqual([undefined, undefined])
  // Only the code itself was spent.
  expect(await redeem('other', 'fourth')).toBe(true)
})

test('a row that is written again has all that it is written with', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const now = new Date()
  const write = (uid: string, payload: Record<string, unknown>, expiresAt: Date) => {
    const row = { ...buildRow('Session', 'one'), uid, payload, expiresAt, grantId: uid, tokenFamilyHash: null }
    return writeStateBatch(db, { spent: undefined, rows: [row], browser: null, now })
  }
  await write('first', { a: 1 }, new Date(now.getTime() + 60_000))
  await write('second', { b: 2 }, new Date(now.getTime() + 90_000))
  const { rows } = await database.pool.query('select uid, payload, grant_id, expires_at from oauth_state')
  const expires_at = new Date(now.getTime() + 90_000)
  expect(rows).toEqual([{ uid: 'second', payload: { b: 2 }, grant_id: 'second', expires_at }])
})
