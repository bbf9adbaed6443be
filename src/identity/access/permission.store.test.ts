import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { syncPermissions, toPermissionRow } from './permission.store.ts'
import {
  assignRoles,
  deleteRoleRow,
  findRole,
  findRoleByName,
  hasActiveHolder,
  insertRole,
  lockGivenRoles,
  lockRole,
  type RoleId,
  replacePatterns,
  updateRole,
  upsertSystemRole,
} from './role.store.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(() => database.pool.query('delete from permission'))

const sync = (ms: number, ...permissions: [name: string, description: string | null][]) =>
  syncPermissions(database.db, {
    permissions: permissions.map(([name, description]) => ({ name, description })),
    now: madeAfter(ms),
  })
const list = async () =>
  (await database.db.selectFrom('permission').selectAll().orderBy('name').execute()).map(toPermissionRow)
const row = (name: string, description: string | null, created: number, updated: number) => ({
  ...{ name, description, created_at: madeAfter(created).toISOString() },
  updated_at: madeAfter(updated).toISOString(),
})

test('the permissions are those of the program: new ones come, changed ones are rewritten, others go', async () => {
  await sync(0, ['a:find', 'A'], ['b:find', null], ['c:find', 'C'])
  expect(await list()).toEqual([row('a:find', 'A', 0, 0), row('b:find', null, 0, 0), row('c:find', 'C', 0, 0)])
  await sync(5, ['a:find', 'A'], ['b:find', 'B'], ['d:find', 'D'])
  expect(await list()).toEqual([row('a:find', 'A', 0, 0), row('b:find', 'B', 0, 5), row('d:find', 'D', 5, 5)])
  await sync(6, ['b:find', null])
  expect(await list()).toEqual([row('b:find', null, 0, 6)])
})

test('a program that knows none leaves them', async () => {
  await sync(0, ['a:find', 'A'])
  await sync(5)
  expect(await list()).toEqual([row('a:find', 'A', 0, 0)])
})

describe('a role', () => {
  const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(database.db, act)
  const find = (id: RoleId) => findRole(database.db, id)
  const facts = { description: 'D', isSystem: false, isAccountScoped: true, requiresSecondFactor: true }
  const make = async (...patterns: string[]) => {
    const id = newId<RoleId>()
    const row = { ...facts, id, name: `role ${id}`, patterns }
    expect(await insertRole(database.db, { ...row, now: MADE_AT })).toMatchObject({ ...facts, id, createdAt: MADE_AT })
    return { ...row, createdAt: MADE_AT, updatedAt: MADE_AT }
  }
  const same = (error: unknown) => error

  test('is kept with its patterns, and changed, given others and deleted alone', async () => {
    const [role, beside] = [await make('a:find', 'b:find'), await make('a:find', 'c:find')]
    expect(await find(role.id)).toEqual(role)
    expect(await findRoleByName(database.db, role.name)).toMatchObject({ id: role.id })
    const change = {
      name: `renamed ${role.id}`,
      description: null,
      isAccountScoped: false,
      requiresSecondFactor: false,
    }
    await write((tx) => updateRole(tx, role.id, { ...change, patterns: ['b:find', 'd:find'], now: madeAfter(1) }, same))
    const changed = { ...role, ...change, patterns: ['b:find', 'd:find'], updatedAt: madeAfter(1) }
    expect(await find(role.id)).toEqual(changed)
    await write((tx) => updateRole(tx, role.id, { now: madeAfter(2) }, same))
    expect(await find(role.id)).toEqual({ ...changed, updatedAt: madeAfter(2) })
    await replacePatterns(database.db, { role: role.id, patterns: ['d:find', 'a:find'] })
    expect((await find(role.id))?.patterns).toEqual(['a:find', 'd:find'])
    expect(await find(beside.id)).toEqual(beside)
    await write((tx) => deleteRoleRow(tx, { id: role.id }))
    expect([await find(role.id), await find(beside.id)]).toEqual([undefined, beside])
  })

  test('is locked alone, and those to give by their name or ids, in the order of their names', async () => {
    const [role, beside, third] = [await make('a:find'), await make(), await make()]
    await write(async (tx) => {
      expect(await lockRole(tx, { id: role.id })).toEqual(role)
      const lock = 'select document_id from role where document_id = any($1) for no key update skip locked'
      const { rows } = await database.pool.query(lock, [[role.id, beside.id]])
      expect(rows).toEqual([{ document_id: beside.id }])
    })
    await write(async (tx) => {
      const given = await lockGivenRoles(tx, { name: third.name, ids: [role.id, newId()] })
      const { patterns, id, isSystem, isAccountScoped } = role
      expect(given.find((found) => found.id === id)).toEqual({
        patterns,
        id,
        isSystem,
        isAccountScoped,
        name: role.name,
      })
      expect(given.map(({ name }) => name)).toEqual([role.name, third.name].toSorted())
      const lock = 'select document_id from role where document_id = any($1) for update skip locked'
      const { rows } = await database.pool.query(lock, [[role.id, beside.id, third.id]])
      expect(rows).toEqual([{ document_id: beside.id }])
    })
  })

  test('of the service is written where it is missing or differs, and only then', async () => {
    const name = `system ${newId()}`
    const upsert = (ms: number, more: { description?: string; isAccountScoped?: boolean } = {}) =>
      upsertSystemRole(database.db, {
        ...{ id: newId<RoleId>(), name, description: 'D', isAccountScoped: false, now: madeAfter(ms) },
        ...more,
      })
    const read = () => findRoleByName(database.db, name)
    await upsert(0)
    const made = await read()
    expect(made).toMatchObject({ isSystem: true, isAccountScoped: false, description: 'D', createdAt: MADE_AT })
    await upsert(1)
    expect(await read()).toEqual(made)
    await upsert(2, { description: 'E' })
    expect(await read()).toEqual({ ...made, description: 'E', updatedAt: madeAfter(2) })
    await upsert(3, { description: 'E', isAccountScoped: true })
    expect(await read()).toEqual({ ...made, description: 'E', isAccountScoped: true, updatedAt: madeAfter(3) })
    await database.pool.query('update role set is_system = false where name = $1', [name])
    await upsert(4, { description: 'E', isAccountScoped: true })
    expect(await read()).toMatchObject({ isSystem: true, updatedAt: madeAfter(4) })
  })

  test('is held by who has it, replaced for this user alone, and counts while somebody active has it', async () => {
    const rows = buildIdentityRows(database.db)
    const [user, other] = [await rows.user(), await rows.user()]
    const [kept, taken, given] = [await make(), await make(), await make()]
    const give = (userId: typeof user, ms: number, ...roles: { id: RoleId }[]) =>
      write((tx) => assignRoles(tx, { userId, roles: roles.map(({ id }) => id), now: madeAfter(ms) }))
    await give(user, 0, kept, taken)
    await give(other, 0, taken)
    await give(user, 1, kept, given)
    const held = 'select role, created_at from user_role where "user" = $1'
    const rolesOf = async (id: typeof user) =>
      new Map((await database.pool.query(held, [id])).rows.map((row) => [row.role, row.created_at]))
    expect(await rolesOf(user)).toEqual(
      new Map([
        [kept.id, MADE_AT],
        [given.id, madeAfter(1)],
      ]),
    )
    expect(await rolesOf(other)).toEqual(new Map([[taken.id, MADE_AT]]))
    const isHeld = ({ name }: { name: string }) => hasActiveHolder(database.db, { name })
    expect([await isHeld(taken), await isHeld(given), await isHeld(await make())]).toEqual([true, true, false])
    await rows.set('user', other, { is_actived: false })
    expect([await isHeld(taken), await isHeld(given)]).toEqual([false, true])
    await rows.set('user', user, { deleted_at: MADE_AT })
    expect(await isHeld(given)).toBe(false)
  })
})
