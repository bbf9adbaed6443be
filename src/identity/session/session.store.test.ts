import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import type { AccountId, SessionId, UserId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { endAccessRows, endUserAccess } from './access-end.store.ts'
import { lockRefreshToken, spendRefreshToken } from './refresh.store.ts'
import {
  deleteEndedSessions,
  endSessionTree,
  findSession,
  findSessionDescription,
  insertSession,
  leaveAccount,
  lockActiveUser,
  revokeSessionTree,
  revokeTokenTree,
  type SessionRecord,
  withClient,
} from './session.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const at = (ms: number) => new Date(NOW.getTime() + ms)
const newId = <T extends string>() => randomUUID() as string as T

let database: TestDatabase
let db: Database
let user: UserId
let other: UserId

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  ;[user, other] = [await makeUser(), await makeUser()]
})

async function makeUser(): Promise<UserId> {
  const id = newId<UserId>()
  const row = { document_id: id, email: `${id}@b.test`, password_hash: 'old', created_at: NOW, updated_at: NOW }
  await db.insertInto('user').values(row).execute()
  return id
}

async function makeAccount(): Promise<AccountId> {
  const id = newId<AccountId>()
  await db.insertInto('account').values({ document_id: id, name: id, created_at: NOW, updated_at: NOW }).execute()
  return id
}

async function open(given: Partial<SessionRecord> = {}) {
  const tokenHash = randomBytes(32)
  const row = {
    ...{ id: newId<SessionId>(), userId: user, accountId: null, parentId: null, address: null, userAgent: null },
    ...{ amr: ['pwd'], acr: null, authTime: NOW, expiresAt: at(60_000), client: null, now: NOW, ...given },
  }
  const refresh = { tokenHash, expiresAt: at(60_000) }
  return { tokenHash, session: await inTransaction(db, (tx) => insertSession(tx, { ...row, refresh })) }
}
const isRevoked = async (id: SessionId) => (await findSession(db, { id }))?.revokedAt != null

describe('a sign-in', () => {
  const lock = (more: Partial<Parameters<typeof lockActiveUser>[1]> = {}) =>
    inTransaction(
      db,
      async (tx) => (await lockActiveUser(tx, { userId: user, passwordHash: null, begunAt: null, ...more }))?.accounts,
    )
  const set = (assignment: string) =>
    database.pool.query(`update "user" set ${assignment} where document_id = $1`, [user])

  test('is of a user who is there and not disabled', async () => {
    expect(await lock()).toEqual([])
    await set('is_actived = false')
    expect(await lock()).toBeUndefined()
    await set('is_actived = true, deleted_at = now()')
    expect(await lock()).toBeUndefined()
  })

  test('is refused when the password was changed meanwhile, or all access was ended', async () => {
    expect([await lock({ passwordHash: 'old' }), await lock({ passwordHash: 'new' })]).toEqual([[], undefined])
    expect(await lock({ begunAt: at(-1) })).toEqual([])
    await set(`access_ended_at = '${NOW.toISOString()}'`)
    expect([await lock(), await lock({ begunAt: NOW }), await lock({ begunAt: at(-1) })]).toEqual([[], [], undefined])
  })

  test('holds its user, so that what ends access waits for it', async () => {
    const waited = await whileHeld(
      db,
      (tx) => lockActiveUser(tx, { userId: user, passwordHash: null, begunAt: null }),
      () => inTransaction(db, (tx) => lockActiveUser(tx, { userId: user, passwordHash: null, begunAt: null })),
    )
    expect(waited).toEqual({ accounts: [], requiredConnection: null })
  })
})

describe('a session', () => {
  test('is found by its id as it was written, beside others', async () => {
    const account = await makeAccount()
    const client = { id: 'app', scope: 'openid', grantId: 'grant' }
    const { session: plain } = await open()
    const { session } = await open({
      ...{ accountId: account, parentId: plain.id, address: '192.0.2.1', userAgent: 'Browser', acr: 'aal1', client },
    })
    expect(await findSession(db, { id: session.id })).toEqual(session)
    expect(await findSession(db, { id: plain.id })).toEqual(plain)
    expect(withClient(session)).toMatchObject({ clientId: 'app', scope: 'openid' })
    expect(withClient(plain)).toMatchObject({ clientId: null, scope: null })
  })

  test('is described with its user alone, who is not deleted', async () => {
    const [{ session }] = [await open(), await open()]
    const described = await findSessionDescription(db, { userId: user, sessionId: session.id })
    const facts = { id: user, email: `${user}@b.test`, isEmailVerified: false }
    expect(described).toMatchObject({ user: facts, session, accounts: [] })
    expect((await findSessionDescription(db, { userId: user, sessionId: null }))?.session).toBeUndefined()
    expect(await findSessionDescription(db, { userId: other, sessionId: session.id })).toMatchObject({
      user: { id: other },
      session: undefined,
    })
    await database.pool.query('update "user" set email_verified_at = $2 where document_id = $1', [user, NOW])
    expect((await findSessionDescription(db, { userId: user, sessionId: session.id }))?.user).toMatchObject({
      isEmailVerified: true,
    })
    await database.pool.query('update "user" set deleted_at = $2 where document_id = $1', [user, NOW])
    expect(await findSessionDescription(db, { userId: user, sessionId: session.id })).toBeUndefined()
  })

  test('ends by its refresh token for its user alone, with those opened from it', async () => {
    const [opened, beside] = [await open(), await open()]
    const child = await open({ parentId: opened.session.id })
    const end = (tokenHash: Buffer, userId: UserId, isFamily = false) =>
      inTransaction(db, (tx) => revokeTokenTree(tx, { tokenHash, userId, isFamily, now: at(1) }))
    const idsOf = (...sessions: (typeof opened)[]) => sessions.map(({ session }) => session.id).toSorted()
    expect(await end(opened.tokenHash, other)).toEqual([])
    expect(await isRevoked(opened.session.id)).toBe(false)
    expect(await end(child.tokenHash, user)).toEqual(idsOf(child))
    expect((await end(child.tokenHash, user, true)).toSorted()).toEqual(idsOf(opened))
    expect(await isRevoked(beside.session.id)).toBe(false)
  })

  test('ends with those opened from it, or with all of its family, and no other does', async () => {
    const [parent, beside] = [(await open()).session.id, (await open()).session.id]
    const [first, second, third] = [
      (await open({ parentId: parent })).session.id,
      (await open({ parentId: parent })).session.id,
      (await open({ parentId: beside })).session.id,
    ]
    expect(await inTransaction(db, (tx) => revokeSessionTree(tx, { id: first, isFamily: false, now: at(1) }))).toEqual([
      first,
    ])
    expect(await isRevoked(parent)).toBe(false)
    const family = await inTransaction(db, (tx) => revokeSessionTree(tx, { id: second, isFamily: true, now: at(1) }))
    expect(family.toSorted()).toEqual([parent, second].toSorted())
    expect([await isRevoked(beside), await isRevoked(third)]).toEqual([false, false])
    await inTransaction(db, async (tx) => {
      await endSessionTree(tx, { id: beside, now: at(1) })
      await findSession(tx, { id: beside })
    })
    expect([await isRevoked(beside), await isRevoked(third)]).toEqual([true, true])
  })

  test('leaves an account, of one user or of all, and no other account', async () => {
    const [account, otherAccount] = [await makeAccount(), await makeAccount()]
    const make = async (userId: UserId, accountId: AccountId) => (await open({ userId, accountId })).session.id
    const ids = [await make(user, account), await make(other, account), await make(user, otherAccount)]
    const accounts = () => Promise.all(ids.map(async (id) => (await findSession(db, { id }))?.accountId))
    const clear = (userId: UserId | 'all') =>
      inTransaction(db, (tx) => leaveAccount(tx, { account, userId, now: at(1) }))
    await clear(user)
    expect(await accounts()).toEqual([null, account, otherAccount])
    expect((await findSession(db, { id: ids[0]! }))?.updatedAt).toEqual(at(1))
    await clear('all')
    expect(await accounts()).toEqual([null, null, otherAccount])
  })
})

test('the end of the access of a user ends its sessions, and those of apps and one of them only where it says so', async () => {
  const client = { id: 'app', scope: 'openid', grantId: null }
  for (const end of [endAccessRows, endUserAccess]) {
    const ids: SessionId[] = []
    for (const more of [{}, {}, { client }, { userId: other }]) ids.push((await open(more)).session.id)
    const revoked = async () => Promise.all(ids.map(isRevoked))
    const act = (more: { keepApps?: boolean; kept?: SessionId }) =>
      inTransaction(db, async (tx) => {
        await end(tx, { userId: user, now: at(1), ...more })
        // It may be sent with the next statement.
        await findSession(tx, { id: ids[0]! })
      })
    await act({ keepApps: true, kept: ids[1]! })
    expect(await revoked()).toEqual([true, false, false, false])
    await act({})
    expect(await revoked()).toEqual([true, true, true, false])
  }
})

describe('a refresh token', () => {
  const find = (tokenHash: Buffer, now = NOW) => inTransaction(db, (tx) => lockRefreshToken(tx, { tokenHash, now }))

  test('is found with its session, which lives until its end, its revocation, or that of its user', async () => {
    const [{ tokenHash, session }] = [await open({ expiresAt: at(9) }), await open()]
    const unspent = { spentAt: null, spentBy: null, successorSalt: null, successorHash: null }
    const found = { ...unspent, session, expiresAt: at(60_000), isSessionLiving: true }
    expect(await find(tokenHash, at(8))).toEqual(found)
    expect(await find(tokenHash, at(9))).toEqual({ ...found, isSessionLiving: false })
    expect(await find(randomBytes(32))).toBeUndefined()
    for (const assignment of ['is_actived = false', 'is_actived = true, deleted_at = now()', 'deleted_at = null']) {
      await database.pool.query(`update "user" set ${assignment} where document_id = $1`, [user])
      expect((await find(tokenHash))?.isSessionLiving).toBe(assignment === 'deleted_at = null')
    }
    await inTransaction(db, (tx) => revokeTokenTree(tx, { tokenHash, userId: user, isFamily: false, now: at(1) }))
    expect((await find(tokenHash))?.isSessionLiving).toBe(false)
  })

  test('is spent alone, for a successor of its session', async () => {
    const [{ tokenHash, session }, beside] = [await open(), await open()]
    const [client, salt, hash] = [randomBytes(32), randomBytes(16), randomBytes(32)]
    const successor = { successorSalt: salt, successorHash: hash, expiresAt: at(5), sessionId: session.id }
    await inTransaction(db, (tx) => spendRefreshToken(tx, { tokenHash, client, ...successor, now: at(1) }))
    const used = { ...session, lastUsedAt: at(1) }
    expect(await find(tokenHash)).toMatchObject({
      ...{ spentAt: at(1), spentBy: client, successorSalt: salt, successorHash: hash, session: used },
    })
    expect(await find(hash)).toMatchObject({ spentAt: null, expiresAt: at(5), session: used })
    expect(await find(beside.tokenHash)).toMatchObject({ spentAt: null, session: beside.session })
    const { rows } = await database.pool.query('select created_at from session_refresh where token_hash = $1', [hash])
    expect(rows).toEqual([{ created_at: at(1) }])
  })

  test('is locked where it is found, so that of two uses the second finds it spent', async () => {
    const { tokenHash } = await open()
    const waited = await whileHeld(
      db,
      (tx) => lockRefreshToken(tx, { tokenHash, now: NOW }),
      () => find(tokenHash),
    )
    expect(waited).toMatchObject({ isSessionLiving: true })
  })
})

test('sessions that ended before an instant are deleted in batches, the oldest first, and no parent before its children', async () => {
  await database.pool.query('delete from session_refresh')
  await database.pool.query('delete from session')
  const make = async (ms: number, parentId: SessionId | null = null) =>
    (await open({ expiresAt: at(ms), parentId })).session.id
  const parent = await make(-9)
  const [young, old, oldest] = [await make(0, parent), await make(-1), await make(-2)]
  await database.pool.query('delete from session_refresh')
  const read = () =>
    Promise.all([parent, young, old, oldest].map(async (id) => (await findSession(db, { id })) !== undefined))
  // A row that another transaction holds is left for later.
  const held = await inTransaction(db, async (tx) => {
    await tx.selectFrom('session').select('document_id').where('document_id', '=', old).forUpdate().execute()
    return deleteEndedSessions(db, NOW, 2)
  })
  expect([held, await read()]).toEqual([1, [true, true, true, false]])
  expect(await deleteEndedSessions(db, NOW, 5)).toBe(1)
  expect(await read()).toEqual([true, true, false, false])
  expect(await deleteEndedSessions(db, at(1), 5)).toBe(1)
  expect(await deleteEndedSessions(db, at(1), 5)).toBe(1)
})
