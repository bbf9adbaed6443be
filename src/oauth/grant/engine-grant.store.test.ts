import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { UserId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import type { ClientId } from '../client/client.store.ts'
import {
  endEngineGrantWithNext,
  listOpenRevocations,
  lockEngineGrant,
  noteEndedThere,
  recordEngineGrants,
  selectEngineGrants,
  upsertEngineGrant,
} from './engine-grant.store.ts'
import type { GrantId } from './grant.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const at = (ms: number) => new Date(NOW.getTime() + ms)
const newId = <T extends string>() => randomUUID() as string as T

/** Users with a grant to both apps each, before the test changes that of `user` to `app`. */
let user: UserId
let other: UserId
const [app, otherApp] = [newId<ClientId>(), newId<ClientId>()]

const database = await openForFile(createTestDatabase())
const { db } = database

const grant = (userId: UserId, clientId: string, scopes: readonly string[], now: Date, clientName = 'App') =>
  upsertEngineGrant(db, { id: newId<GrantId>(), userId, clientId, clientName, scopes, now })
const end = (now: Date) =>
  inTransaction(db, async (tx) => {
    await endEngineGrantWithNext(tx, { userId: user, clientId: app, now })
    await lockEngineGrant(tx, { id: newId() })
  })
const record = (scopes: readonly string[], readAt: Date) =>
  recordEngineGrants(db, {
    userId: user,
    grants: [{ id: newId<GrantId>(), clientId: app, clientName: 'Listed', scopes }],
    readAt,
  })
const list = async (owner: UserId | 'all') =>
  (await selectEngineGrants(db, owner).execute()).map(({ id, clientId, clientName, scopes, createdAt, updatedAt }) => ({
    ...{ id, clientId, clientName, createdAt, updatedAt },
    scopes: [...scopes].sort(),
  }))
const find = async () => (await list(user)).find(({ clientId }) => clientId === app)

beforeEach(async () => {
  ;[user, other] = [newId<UserId>(), newId<UserId>()]
  for (const id of [other, user]) {
    const row = { document_id: id, email: `${id}@b.test`, created_at: NOW, updated_at: NOW }
    await db.insertInto('user').values(row).execute()
    for (const clientId of [otherApp, app]) await grant(id, clientId, ['openid'], NOW)
  }
})

/** The grants beside the changed one: all of the other user, and that of the other app. */
const readOthers = async () => [
  ...(await list(other)),
  ...(await list(user)).filter(({ clientId }) => clientId !== app),
]

describe('a grant at a managed engine', () => {
  test('is written again with its name and its scopes, and keeps its id and its age', async () => {
    const others = await readOthers()
    const before = await find()
    await grant(user, app, ['openid', 'email'], at(1), 'Renamed')
    const scopes = ['email', 'openid']
    expect(await find()).toEqual({ ...before, clientName: 'Renamed', scopes, updatedAt: at(1) })
    expect(await readOthers()).toEqual(others)
  })

  test('begins anew after its end, also at the engine', async () => {
    const before = await find()
    await end(at(1))
    await noteEndedThere(db, { userId: user, clientIds: [app] })
    expect(await find()).toBeUndefined()
    const id = await grant(user, app, ['email'], at(2))
    expect(id).not.toBe(before?.id)
    const begun = { id, clientId: app, clientName: 'App', scopes: ['email'], createdAt: at(2), updatedAt: at(2) }
    expect(await find()).toEqual(begun)
    // Its next end is to be told to the engine again.
    await end(at(3))
    expect(await listOpenRevocations(db, { userId: user })).toEqual([app])
  })

  test('ends alone, and is locked until then', async () => {
    const others = await readOthers()
    const { id = '' } = (await find()) ?? {}
    expect(await inTransaction(db, (tx) => lockEngineGrant(tx, { id }))).toMatchObject({
      id,
      userId: user,
      clientId: app,
    })
    await end(at(1))
    expect(await inTransaction(db, (tx) => lockEngineGrant(tx, { id }))).toBeUndefined()
    expect(await readOthers()).toEqual(others)
  })

  test('is open at the engine until it ended there, for its user alone', async () => {
    expect(await listOpenRevocations(db, { userId: user })).toEqual([])
    await end(at(1))
    expect([await listOpenRevocations(db, { userId: user }), await listOpenRevocations(db, { userId: other })]).toEqual(
      [[app], []],
    )
    for (const [userId, clientId] of [[other, app] as const, [user, otherApp] as const])
      await noteEndedThere(db, { userId, clientIds: [clientId] })
    expect(await listOpenRevocations(db, { userId: user })).toEqual([app])
    await noteEndedThere(db, { userId: user, clientIds: [app] })
    expect(await listOpenRevocations(db, { userId: user })).toEqual([])
  })

  test('that is live is not noted as ended at the engine', async () => {
    await noteEndedThere(db, { userId: user, clientIds: [app] })
    const { rows } = await database.pool.query('select distinct is_ended_there from engine_grant where "user" = $1', [
      user,
    ])
    expect(rows).toEqual([{ is_ended_there: false }])
    await end(at(1))
    expect(await listOpenRevocations(db, { userId: user })).toEqual([app])
  })
})

describe('a grant in the list of the engine', () => {
  test('that is new is recorded', async () => {
    const [id, clientId] = [newId<GrantId>(), newId<ClientId>()]
    const grants = [{ id, clientId, clientName: 'New', scopes: ['openid'] }]
    await recordEngineGrants(db, { userId: user, grants, readAt: at(5) })
    expect(await list(user)).toContainEqual({
      ...{ id, clientId, clientName: 'New', scopes: ['openid'], createdAt: at(5), updatedAt: at(5) },
    })
  })

  test('adds its scopes to those that it has here, and changes nothing without a new one', async () => {
    const before = await find()
    await record(['openid'], at(1))
    expect(await find()).toEqual(before)
    await record(['email'], at(1))
    expect(await find()).toEqual({ ...before, clientName: 'Listed', scopes: ['email', 'openid'], updatedAt: at(1) })
  })

  test('stays revoked until the engine has ended it too and lists it after that', async () => {
    await end(at(10))
    await record(['email'], at(20))
    expect(await find()).toBeUndefined()
    await noteEndedThere(db, { userId: user, clientIds: [app] })
    await record(['email'], at(10))
    expect(await find()).toBeUndefined()
    await record(['email'], at(11))
    expect(await find()).toMatchObject({ scopes: ['email'], createdAt: at(11), updatedAt: at(11) })
    await end(at(12))
    expect(await listOpenRevocations(db, { userId: user })).toEqual([app])
  })
})
