import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { whileHeld, whileLockedInOrder } from '../../../test/harness/plan/lock-waits.ts'
import type { AccountId, ConnectionId, SessionId, UserId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { divideAccounts } from './by-connection.ts'
import { findSession, leaveAccount } from './session.store.ts'
import { lockSession, lockUser, lowerUserSessions, setSessionProof } from './session-proof.store.ts'
import { raiseSession } from './session-proof.ts'

/** How a session was proved, each row beside another of the same user and of another one. */

const MULTI = { amr: ['pwd', 'otp', 'mfa'], acr: 'aal2' }

let database: TestDatabase
let rows: ReturnType<typeof buildIdentityRows>
let [user, other]: [UserId, UserId] = [newId(), newId()]
beforeAll(async () => {
  database = await createTestDatabase()
  rows = buildIdentityRows(database.db)
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  ;[user, other] = [await rows.user(), await rows.user()]
})

const read = async (id: SessionId) => {
  const { amr, acr, authTime, updatedAt } = (await findSession(database.db, { id }))!
  return { amr, acr, authTime, updatedAt }
}
const made = (more: object = {}) => ({ ...MULTI, authTime: MADE_AT, updatedAt: MADE_AT, ...more })

test('an open session is found, and neither a revoked nor an unknown one', async () => {
  const [open, revoked] = [await rows.session(user), await rows.session(user, { revoked_at: MADE_AT })]
  const find = (id: SessionId) => inTransaction(database.db, (tx) => lockSession(tx, { id }))
  expect(await find(open)).toMatchObject({ id: open, userId: user })
  expect([await find(revoked), await find(newId<SessionId>())]).toEqual([undefined, undefined])
})

test('a proof is of its session alone', async () => {
  const [own, beside] = [await rows.session(user, MULTI), await rows.session(user, MULTI)]
  const proof = { amr: ['pwd'], acr: 'aal1', now: madeAfter(1) }
  await inTransaction(database.db, (tx) => setSessionProof(tx, { id: own, ...proof }))
  expect(await read(own)).toEqual({ amr: ['pwd'], acr: 'aal1', authTime: madeAfter(1), updatedAt: madeAfter(1) })
  expect(await read(beside)).toEqual(made())
})

test('a second factor is added to what proved a session, which is refused once it is revoked', async () => {
  const [id, beside] = [await rows.session(user, { amr: ['pwd'], acr: 'aal1' }), await rows.session(user, MULTI)]
  const raise = () =>
    inTransaction(database.db, (tx) => raiseSession(tx, { sessionId: id, methods: ['otp'], now: madeAfter(1) }))
  const raised = { ...MULTI, authTime: madeAfter(1), updatedAt: madeAfter(1) }
  expect(await raise()).toMatchObject({ id, ...raised })
  expect([await read(id), await read(beside)]).toEqual([raised, made()])
  await database.pool.query('update session set revoked_at = $2 where document_id = $1', [id, madeAfter(2)])
  await expect(raise()).rejects.toMatchObject({ code: 'unauthenticated' })
})

test('without a second factor no open session of the user has one, and no other session changes', async () => {
  const [first, second] = [await rows.session(user, MULTI), await rows.session(user, MULTI)]
  const single = await rows.session(user, { amr: ['pwd'], acr: 'aal3' })
  const revoked = await rows.session(user, { ...MULTI, revoked_at: MADE_AT })
  const foreign = await rows.session(other, MULTI)
  await inTransaction(database.db, (tx) => lowerUserSessions(tx, { userId: user, acr: 'aal1', now: madeAfter(1) }))
  const lowered = { amr: ['pwd', 'otp'], acr: 'aal1', authTime: MADE_AT, updatedAt: madeAfter(1) }
  expect([await read(first), await read(second)]).toEqual([lowered, lowered])
  expect(await read(single)).toEqual(made({ amr: ['pwd'], acr: 'aal3' }))
  expect(await read(foreign)).toEqual(made())
  const [kept] = (await database.pool.query('select amr, acr from session where document_id = $1', [revoked])).rows
  expect(kept).toEqual(MULTI)
})

test('the sessions of a user, or of an account, change in the order of their ids', async () => {
  const { db } = database
  const account = await rows.account()
  const [least, greatest] = [newId<SessionId>(), newId<SessionId>()].toSorted() as [SessionId, SessionId]
  for (const id of [greatest, least]) await rows.session(user, { ...MULTI, document_id: id, account })
  const lock = (id: SessionId) => (tx: typeof db) => lockSession(tx, { id })
  const change = (act: (tx: typeof db) => Promise<void>) =>
    whileLockedInOrder(db, { first: lock(least), last: lock(greatest) }, () => inTransaction(db, act))
  await change((tx) => lowerUserSessions(tx, { userId: user, acr: 'aal1', now: MADE_AT }))
  await change((tx) => leaveAccount(tx, { account, userId: 'all', now: MADE_AT }))
  expect(await findSession(db, { id: least })).toMatchObject({ acr: 'aal1', accountId: null })
})

test('a session and a user do not change behind their locks', async () => {
  const { db, pool } = database
  const id = await rows.session(user)
  const revoke = () => pool.query('update session set revoked_at = now() where document_id = $1', [id])
  expect((await whileHeld(db, (tx) => lockSession(tx, { id }), revoke)).rowCount).toBe(1)
  const rename = () => pool.query('update "user" set name = null where document_id = $1', [user])
  const hold = async (tx: typeof db) => {
    await lockUser(tx, { userId: user })
    // It is sent with the next statement.
    await lockSession(tx, { id: newId<SessionId>() })
    // No other user waits.
    await pool.query('select from "user" where document_id = $1 for no key update nowait', [other])
  }
  expect((await whileHeld(db, hold, rename)).rowCount).toBe(1)
})

test('an account that demands its connection is closed to a session that lacks its proof, and no other account is', () => {
  const [account, beside] = [
    { id: newId<AccountId>(), name: 'one' },
    { id: newId<AccountId>(), name: 'two' },
  ]
  const accounts = [account, beside]
  const narrowing = { account: account.id, connection: newId<ConnectionId>(), lacking: [], enterPath: '/enter' }
  const divide = (provenUntil: Date | null) =>
    divideAccounts({ accounts }, { narrowing: { ...narrowing, provenUntil } })
  const closed = [{ ...account, connection: narrowing.connection, enterPath: '/enter' }]
  expect(divide(null)).toEqual({ accounts: [beside], closed })
  expect(divide(MADE_AT)).toEqual({ accounts, closed: [] })
  expect(divideAccounts({ accounts }, {})).toEqual({ accounts, closed: [] })
})
