import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { SessionId, UserId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { findSession } from './session.store.ts'
import { lockSession, lockUserAhead, lowerUserSessions, setSessionProof } from './session-proof.store.ts'

/** How a session was proved, each row beside another of the same user and of another one. */

const MULTI = { amr: ['pwd', 'otp', 'mfa'], acr: 'aal2' }

let [user, other]: [UserId, UserId] = [newId(), newId()]
const database = await openForFile(createTestDatabase())
const rows = buildIdentityRows(database.db)
beforeEach(async () => {
  ;[user, other] = [await rows.user(), await rows.user()]
})

const read = async (id: SessionId) => {
  const { amr, acr, authTime, updatedAt } = (await findSession(database.db, id))!
  return { amr, acr, authTime, updatedAt }
}
const made = (more: object = {}) => ({ ...MULTI, authTime: MADE_AT, updatedAt: MADE_AT, ...more })

test('an open session is found, and neither a revoked nor an unknown one', async () => {
  const [open, revoked] = [await rows.session(user), await rows.session(user, { revoked_at: MADE_AT })]
  const find = (id: SessionId) => inTransaction(database.db, (tx) => lockSession(tx, id))
  expect(await find(open)).toMatchObject({ id: open, userId: user })
  expect([await find(revoked), await find(newId<SessionId>())]).toEqual([undefined, undefined])
})

test('a proof is of its session alone', async () => {
  const [own, beside] = [await rows.session(user, MULTI), await rows.session(user, MULTI)]
  const proof = { amr: ['pwd'], acr: 'aal1', now: madeAfter(1) }
  await inTransaction(database.db, (tx) => setSessionProof(tx, own, proof))
  expect(await read(own)).toEqual({ amr: ['pwd'], acr: 'aal1', authTime: madeAfter(1), updatedAt: madeAfter(1) })
  expect(await read(beside)).toEqual(made())
})

test('without a second factor no open session of the user has one, and no other session changes', async () => {
  const [first, second] = [await rows.session(user, MULTI), await rows.session(user, MULTI)]
  const single = await rows.session(user, { amr: ['pwd'], acr: 'aal3' })
  const revoked = await rows.session(user, { ...MULTI, revoked_at: MADE_AT })
  const foreign = await rows.session(other, MULTI)
  await inTransaction(database.db, (tx) => lowerUserSessions(tx, user, { acr: 'aal1', now: madeAfter(1) }))
  const lowered = { amr: ['pwd', 'otp'], acr: 'aal1', authTime: MADE_AT, updatedAt: madeAfter(1) }
  expect([await read(first), await read(second)]).toEqual([lowered, lowered])
  expect(await read(single)).toEqual(made({ amr: ['pwd'], acr: 'aal3' }))
  expect(await read(foreign)).toEqual(made())
  const [kept] = (await database.pool.query('select amr, acr from session where document_id = $1', [revoked])).rows
  expect(kept).toEqual(MULTI)
})

test('a session and a user do not change behind their locks', async () => {
  const { db, pool } = database
  const id = await rows.session(user)
  const revoke = () => pool.query('update session set revoked_at = now() where document_id = $1', [id])
  expect((await whileHeld(db, (tx) => lockSession(tx, id), revoke)).rowCount).toBe(1)
  const rename = () => pool.query('update "user" set name = null where document_id = $1', [user])
  const hold = async (tx: typeof db) => {
    await lockUserAhead(tx, user)
    // It is sent with the next statement.
    await lockSession(tx, newId<SessionId>())
  }
  expect((await whileHeld(db, hold, rename)).rowCount).toBe(1)
})
