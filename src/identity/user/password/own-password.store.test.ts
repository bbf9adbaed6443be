import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../../test/harness/database/identity-rows.ts'
import { whileHeld } from '../../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { SessionId, UserId } from '../../../base/id.ts'
import { type Database, inTransaction } from '../../../postgres/statement/database.ts'
import { findOwnCredentials, lockOwnCredentials, setPasswordHash } from './own-password.store.ts'

/** The user under test, and another one. */
let user: UserId
let other: UserId
const { db } = await openForFile(createTestDatabase())
const rows = buildIdentityRows(db)
beforeEach(async () => {
  user = await rows.user({ name: 'Ada', password_hash: 'hash' })
  other = await rows.user({ name: 'Eve', password_hash: 'other' })
})

const read = (id: UserId) => db.selectFrom('user').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()

test('the credentials of a user are its own, and none once it is deleted', async () => {
  expect(await findOwnCredentials(db, { userId: user })).toEqual({
    email: `${user}@b.test`,
    name: 'Ada',
    passwordHash: 'hash',
  })
  await rows.set('user', user, { deleted_at: MADE_AT })
  expect(await findOwnCredentials(db, { userId: user })).toBeUndefined()
  expect(await findOwnCredentials(db, { userId: newId() })).toBeUndefined()
})

describe('the locked credentials', () => {
  const lock = (kept: SessionId, keepApps = false, on: Database = db) =>
    inTransaction(on, (tx) => lockOwnCredentials(tx, { userId: user, keepApps, kept }))

  test('count what ends with the password: the keys and sessions of the user but the kept one', async () => {
    const kept = await rows.session(user)
    await rows.session(user)
    await rows.session(user, { client_id: newId(), scope: 'openid' })
    await rows.session(user, { revoked_at: MADE_AT })
    await rows.session(other)
    await rows.apiKey(user)
    await rows.apiKey(user, { revoked_at: MADE_AT })
    await rows.apiKey(other)
    expect(await lock(kept)).toEqual({ passwordHash: 'hash', endingSessions: 2, apiKeys: 1 })
    expect(await lock(kept, true)).toMatchObject({ endingSessions: 1 })
  })

  test('are none of a deleted user', async () => {
    await rows.set('user', user, { deleted_at: MADE_AT })
    expect(await lock(newId())).toBeUndefined()
  })

  test('are read behind another change of the user', async () => {
    const found = await whileHeld(
      db,
      async (tx) => {
        await lockOwnCredentials(tx, { userId: user, keepApps: false, kept: newId() })
        await setPasswordHash(tx, { userId: user, passwordHash: 'new', verifiedAt: null, now: MADE_AT })
      },
      () => lock(newId()),
    )
    expect(found).toMatchObject({ passwordHash: 'new' })
  })
})

describe('a new password', () => {
  const set = (verifiedAt: Date | null) =>
    inTransaction(db, (tx) => setPasswordHash(tx, { userId: user, passwordHash: 'new', verifiedAt, now: madeAfter(5) }))

  test('is that of one user, at its instant', async () => {
    const [before, beside] = [await read(user), await read(other)]
    await set(null)
    expect(await read(user)).toEqual({ ...before, password_hash: 'new', updated_at: madeAfter(5) })
    expect(await read(other)).toEqual(beside)
  })

  test('verifies the address where its link proved it, and keeps an earlier proof', async () => {
    await set(madeAfter(3))
    expect((await read(user)).email_verified_at).toEqual(madeAfter(3))
    await set(madeAfter(4))
    expect((await read(user)).email_verified_at).toEqual(madeAfter(3))
  })
})
