import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import type { UserId } from '../../base/id.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { findSession } from '../../identity/session/session.store.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { type ClientId, insertClient } from '../client/client.store.ts'
import { DEFAULT_SETTINGS } from '../client/client.ts'
import { upsertEngineGrant } from './engine-grant.store.ts'
import {
  findGrantOf,
  type GrantId,
  lockGrant,
  lockSilentGrant,
  selectGrants,
  upsertGrant,
  widenGrant,
} from './grant.store.ts'
import { listUsersApps, revokeGrant, revokeUsersGrant } from './grant.ts'

let database: TestDatabase
let db: Database
let rows: ReturnType<typeof buildIdentityRows>
let [user, other] = [newId<UserId>(), newId<UserId>()]
let [client, beside] = [newId<ClientId>(), newId<ClientId>()]
beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  rows = buildIdentityRows(db)
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  ;[user, other] = [await rows.user(), await rows.user()]
  ;[client, beside] = [await addClient(), await addClient()]
})

const addClient = async () => {
  const id = randomUUID() as string as ClientId
  const facts = { name: 'App', type: 'public', redirectUris: ['https://app.example.com/callback'] } as const
  const rest = { id, logoHash: null, registration: 'administrator', createdAt: MADE_AT, updatedAt: MADE_AT } as const
  await inTransaction(db, (tx) =>
    insertClient(tx, { ...DEFAULT_SETTINGS, ...facts, ...rest, redirectUris: [...facts.redirectUris] }, undefined),
  )
  return id
}
const allow = async (userId: UserId, clientId: ClientId, scopes: string[], ms = 0) =>
  (
    await upsertGrant(db, {
      ...{
        id: randomUUID() as string as GrantId,
        userId,
        clientId,
        scopes,
        refusedScopes: [`refused-${ms}`],
        redirectUris: [`https://app.example.com/${ms}`],
      },
      now: madeAfter(ms),
    })
  ).id

test('a user has one grant of a client until it is revoked, and another one after', async () => {
  const { pool } = database
  const first = await allow(user, client, ['openid'])
  for (const [userId, clientId] of [
    [other, client],
    [user, beside],
  ] as [UserId, ClientId][])
    await allow(userId, clientId, ['email'])
  expect(await allow(user, client, ['openid', 'email'], 1)).toBe(first)
  expect(await findGrantOf(db, { userId: user, clientId: client })).toMatchObject({
    ...{
      id: first,
      scopes: ['openid', 'email'],
      refusedScopes: ['refused-1'],
      redirectUris: ['https://app.example.com/1'],
      createdAt: MADE_AT,
      updatedAt: madeAfter(1),
    },
  })
  await pool.query('update oauth_grant set revoked_at = now() where document_id = $1', [first])
  expect(await findGrantOf(db, { userId: user, clientId: client })).toBeUndefined()
  expect(await findGrantOf(db, { userId: other, clientId: client })).toMatchObject({ scopes: ['email'] })
  expect(await allow(user, client, ['openid'], 2)).not.toBe(first)
})

test('a grant is widened by what is new, or begun, and keeps what it had', async () => {
  const widen = (scopes: string[], ms: number) =>
    widenGrant(db, {
      ...{ id: newId<GrantId>(), userId: user, clientId: client, scopes, refusedScopes: [`refused-${ms}`] },
      now: madeAfter(ms),
    })
  const begun = await widen(['openid'], 0)
  expect(begun).toMatchObject({ scopes: ['openid'], redirectUris: [], refusedScopes: ['refused-0'] })
  const kept = { ...begun, scopes: ['openid', 'email'], refusedScopes: ['refused-1'], updatedAt: madeAfter(1) }
  expect(await widen(['email', 'openid'], 1)).toEqual(kept)
  expect(await findGrantOf(db, { userId: user, clientId: client })).toEqual(kept)
})

test('a user revokes its own grant, once, with the sessions of its app, and nothing else', async () => {
  const [own, foreign, third] = [
    await allow(user, client, ['openid']),
    await allow(other, client, ['openid']),
    await allow(user, beside, ['openid']),
  ]
  const sessions = [own, foreign].map((grant_id) =>
    rows.session(user, { grant_id, client_id: client, scope: 'openid' }),
  )
  const ids = await Promise.all(sessions)
  const revoke = (id: string, userId = user) =>
    inTransaction(db, (tx) => revokeUsersGrant({ isManaged: false }, tx, { id, userId, now: madeAfter(1) }))
  const notFound = { code: 'not_found' }
  await expect(revoke(own, other)).rejects.toMatchObject(notFound)
  await expect(revoke(randomUUID())).rejects.toMatchObject(notFound)
  expect(await revoke(own)).toMatchObject({ id: own, userId: user, clientId: client, clientName: 'App' })
  await expect(revoke(own)).rejects.toMatchObject(notFound)
  const list = async (owner: UserId | 'all') => {
    const listed = await selectGrants(db, owner).execute()
    return [own, foreign, third].filter((id) => listed.some((row) => row.id === id && row.clientName === 'App'))
  }
  expect([await list(user), await list(other), await list('all')]).toEqual([[third], [foreign], [foreign, third]])
  expect((await listUsersApps({ isManaged: false }, db, user)).map(({ grantId }) => grantId)).toEqual([third])
  const { rows: grants } = await database.pool.query(
    'select document_id, revoked_at, updated_at from oauth_grant where document_id = any($1)',
    [[own, foreign, third]],
  )
  const ended = new Map(grants.map((row) => [row.document_id, [row.revoked_at, row.updated_at]]))
  expect([own, foreign, third].map((id) => ended.get(id))).toEqual([
    [madeAfter(1), madeAfter(1)],
    [null, MADE_AT],
    [null, MADE_AT],
  ])
  const found = await Promise.all(ids.map((id) => findSession(db, { id })))
  expect(found.map((session) => session?.revokedAt)).toEqual([madeAfter(1), null])
})

const PERMISSION = 'oauth-grant:delete'
/** A caller who holds `pattern` everywhere, or nothing. */
const callerOf = (userId: UserId, pattern?: string) => {
  const none = { accountPatterns: [], membershipPatterns: [], accounts: [], ceiling: null, keyAccount: null }
  return { userId, patterns: pattern === undefined ? [] : [pattern], ...none } as unknown as Caller
}

test.each([false, true])(
  'a grant is revoked by its user or by who may for all (of a managed engine: %s)',
  async (isManaged) => {
    /** The id of a grant of the user, where the apps are; the other place holds none. */
    const begin = (userId: UserId) => {
      const row = { id: newId<GrantId>(), userId, clientId: newId<ClientId>(), scopes: ['openid'], now: MADE_AT }
      return isManaged ? upsertEngineGrant(db, { ...row, clientName: 'App' }) : allow(userId, client, ['openid'])
    }
    const act = (id: string, caller: Caller) =>
      inTransaction(db, (tx) =>
        revokeGrant({ isManaged }, tx, { id, caller, permission: PERMISSION, now: madeAfter(1) }),
      )
    const own = await begin(user)
    const notFound = { code: 'not_found' }
    await expect(act(own, callerOf(other))).rejects.toMatchObject(notFound)
    await expect(act(newId(), callerOf(user, PERMISSION))).rejects.toMatchObject(notFound)
    expect(await act(own, callerOf(user))).toMatchObject({ id: own, userId: user })
    await expect(act(own, callerOf(user))).rejects.toMatchObject(notFound)
    const foreign = await begin(user)
    const idsOf = async () => (await listUsersApps({ isManaged }, db, user)).map(({ grantId }) => grantId)
    expect(await idsOf()).toEqual([foreign])
    expect(await act(foreign, callerOf(other, PERMISSION))).toMatchObject({ id: foreign })
    expect(await idsOf()).toEqual([])
    const last = await begin(user)
    const onPage = (userId: UserId) =>
      inTransaction(db, (tx) => revokeUsersGrant({ isManaged }, tx, { id: last, userId, now: madeAfter(2) }))
    await expect(onPage(other)).rejects.toMatchObject(notFound)
    expect(await onPage(user)).toMatchObject({ id: last })
    expect(await idsOf()).toEqual([])
  },
)

test('a grant is locked until the transaction ends', async () => {
  const id = await allow(user, client, ['openid'])
  const lock = (tx: Database) => lockGrant(tx, { id })
  expect(await whileHeld(db, lock, () => inTransaction(db, lock))).toMatchObject({ id })
})

test('a grant without a question is one of an active user to a first-party client that is there', async () => {
  const set = (table: string, id: string, assignment: string) =>
    database.pool.query(`update ${table} set ${assignment} where document_id = $1`, [id])
  const may = () => inTransaction(db, (tx) => lockSilentGrant(tx, { userId: user, clientId: client }))
  await set('oauth_client', beside, 'first_party = true')
  expect(await may()).toBe(false)
  await set('oauth_client', client, 'first_party = true')
  expect(await may()).toBe(true)
  await set('"user"', user, 'is_actived = false')
  expect(await may()).toBe(false)
  await set('"user"', user, 'is_actived = true')
  await set('oauth_client', client, 'deleted_at = now()')
  expect(await may()).toBe(false)
})
