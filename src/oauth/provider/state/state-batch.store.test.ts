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
