import { randomBytes, randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, SessionId, UserId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import {
  clearSessionAccount,
  deleteEndedSessions,
  findSession,
  findSessionDescription,
  insertSession,
  lockActiveUser,
  revokeTokenTree,
  type SessionRecord,
} from './session.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const at = (ms: number) => new Date(NOW.getTime() + ms)
const newId = <T extends string>() => randomUUID() as string as T

let user: UserId
let other: UserId

const database = await openForFile(createTestDatabase())
const { db } = database
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
const isRevoked = async (id: SessionId) => (await findSession(db, id))?.revokedAt != null

describe('a sign-in', () => {
  const lock = (more: Parameters<typeof lockActiveUser>[2] = {}) =>
    inTransaction(db, async (tx) => (await lockActiveUser(tx, user, more))?.accounts)
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
    await set(`access_ended_at = '${NOW.toISOString()}'`)
    expect([await lock(), await lock({ begunAt: NOW }), await lock({ begunAt: at(-1) })]).toEqual([[], [], undefined])
  })

  test('holds its user, so that what ends access waits for it', async () => {
    const waited = await whileHeld(
      db,
      (tx) => lockActiveUser(tx, user),
      () => inTransaction(db, (tx) => lockActiveUser(tx, user)),
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
    expect(await findSession(db, session.id)).toEqual(session)
    expect(await findSession(db, plain.id)).toEqual(plain)
  })

  test('is described with its user alone, who is not deleted', async () => {
    const { session } = await open()
    const described = await findSessionDescription(db, user, session.id)
    expect(described).toMatchObject({ user: { id: user, email: `${user}@b.test` }, session, accounts: [] })
    expect(await findSessionDescription(db, other, session.id)).toMatchObject({
      user: { id: other },
      session: undefined,
    })
    await database.pool.query('update "user" set deleted_at = $2 where document_id = $1', [user, NOW])
    expect(await findSessionDescription(db, user, session.id)).toBeUndefined()
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

  test('leaves an account, of one user or of all, and no other account', async () => {
    const [account, otherAccount] = [await makeAccount(), await makeAccount()]
    const make = async (userId: UserId, accountId: AccountId) => (await open({ userId, accountId })).session.id
    const ids = [await make(user, account), await make(other, account), await make(user, otherAccount)]
    const accounts = () => Promise.all(ids.map(async (id) => (await findSession(db, id))?.accountId))
    const clear = (userId: UserId | 'all') =>
      inTransaction(db, (tx) => clearSessionAccount(tx, { account, userId, now: at(1) }))
    await clear(user)
    expect(await accounts()).toEqual([null, account, otherAccount])
    expect((await findSession(db, ids[0]!))?.updatedAt).toEqual(at(1))
    await clear('all')
    expect(await accounts()).toEqual([null, null, otherAccount])
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
    Promise.all([parent, young, old, oldest].map(async (id) => (await findSession(db, id)) !== undefined))
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
