import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import type { AccountId, UserId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import type { RoleId } from '../access/role.store.ts'
import {
  findAccount,
  insertAccount,
  keepAccount,
  lockForRename,
  renameIfDifferent,
  selectAccounts,
  softDeleteAccount,
  withinScope,
} from './account.store.ts'
import {
  type AccountMemberId,
  insertAccountMember,
  listMembersAmong,
  lockCandidate,
  replaceMemberRoles,
  selectAccountMembers,
} from './account-member.store.ts'

test('the members of an account are its own, who are there, with their roles in it, while the account is there', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const rows = buildIdentityRows(db)
  const [account, other] = [await rows.account(), await rows.account()]
  const [ada, bob, gone, stranger] = [await rows.user(), await rows.user(), await rows.user(), await rows.user()]
  for (const name of ['boss', 'clerk'])
    await database.pool.query(
      `insert into role (document_id, name, created_at, updated_at) values (gen_random_uuid(), $1, $2, $2)`,
      [name, MADE_AT],
    )
  await rows.member(account, ada, ['boss', 'clerk'])
  await rows.member(account, bob)
  await rows.member(account, gone)
  await rows.member(other, ada, ['clerk'])
  await rows.member(other, stranger)
  await rows.set('user', gone, { deleted_at: MADE_AT })
  const list = async () =>
    Object.fromEntries(
      (await selectAccountMembers(db, account).execute()).map(({ email, roles }) => [email, roles.length]),
    )
  expect(await list()).toEqual({ [`${ada}@b.test`]: 2, [`${bob}@b.test`]: 0 })
  const among = (of: string, ...users: string[]) => listMembersAmong(db, { account: of, users })
  expect(await among(account, ada, stranger)).toEqual([ada])
  expect(await among(other, stranger)).toEqual([stranger])
  await rows.set('account', account, { deleted_at: MADE_AT })
  expect(await list()).toEqual({})
})

test('a candidate is locked with its account and the roles that are asked for or held, and no others are', async () => {
  await using database = await createTestDatabase()
  const { db, pool } = database
  const rows = buildIdentityRows(db)
  const [account, other] = [await rows.account(), await rows.account()]
  const [user, stranger] = [await rows.user({ password_hash: 'hash', name: 'Ada' }), await rows.user()]
  const addRole = async (name: string) => {
    const id = newId<RoleId>()
    const insert = `insert into role (document_id, name, is_account_scoped, created_at, updated_at)
      values ($1, $2, true, $3, $3)`
    await pool.query(insert, [id, name, MADE_AT])
    return id
  }
  const [held, asked, kept, foreign] = [
    ...[await addRole('held'), await addRole('asked'), await addRole('a kept one'), await addRole('foreign')],
  ] as [RoleId, RoleId, RoleId, RoleId]
  const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)
  const find = (userId: UserId | string = user, roles: RoleId[] = [], of: string = account) =>
    write((tx) => lockCandidate(tx, { account: of, userId, roles }))
  const nobody = { hasAccount: true, isLiving: true, hasPassword: false, isEmailVerified: false, member: undefined }
  expect(await find()).toMatchObject({ ...nobody, hasPassword: true, email: `${user}@b.test`, name: 'Ada', asked: [] })
  expect(await find(stranger)).toMatchObject({ ...nobody, email: `${stranger}@b.test`, name: null })

  const row = { id: newId<AccountMemberId>(), account, userId: user, roles: [held, kept], now: MADE_AT }
  const beside = { ...row, id: newId<AccountMemberId>(), userId: stranger, roles: [foreign] }
  const member = await write((tx) => insertAccountMember(tx, row))
  await write((tx) => insertAccountMember(tx, beside))
  expect(member).toEqual({ ...row, now: undefined, createdAt: MADE_AT, updatedAt: MADE_AT })
  const found = await find(user, [asked])
  expect({ ...found.member, roles: found.member?.roles.toSorted() }).toEqual({
    ...{ id: row.id, account, userId: user, roles: [held, kept].toSorted(), createdAt: MADE_AT, updatedAt: MADE_AT },
  })
  expect(found.asked.map(({ name, isAccountScoped }) => [name, isAccountScoped])).toEqual([
    ...[
      ['a kept one', true],
      ['asked', true],
      ['held', true],
    ],
  ])
  expect((await find(user, [], other)).member).toBeUndefined()

  const free = async (table: string, ...ids: string[]) => {
    const lock = `select document_id from ${table} where document_id = any($1) for update skip locked`
    return (await pool.query(lock, [ids])).rows.map(({ document_id: id }) => id)
  }
  await write(async (tx) => {
    await lockCandidate(tx, { account, userId: user, roles: [asked] })
    expect(await free('account', account, other)).toEqual([other])
    expect(await free('"user"', user, stranger)).toEqual([stranger])
    expect(await free('role', held, asked, kept, foreign)).toEqual([foreign])
  })

  await write((tx) => replaceMemberRoles(tx, { member, roles: [kept, asked], now: madeAfter(1) }))
  const given = await pool.query('select role, created_at from account_member_role where member = $1', [row.id])
  expect(new Map(given.rows.map((found) => [found.role, found.created_at]))).toEqual(
    new Map([
      [kept, MADE_AT],
      [asked, madeAfter(1)],
    ]),
  )
  expect((await find()).member?.updatedAt).toEqual(madeAfter(1))
  expect((await find(stranger)).member).toMatchObject({ roles: [foreign], updatedAt: MADE_AT })

  await rows.set('user', user, { deleted_at: MADE_AT, email_verified_at: MADE_AT })
  await rows.set('account', account, { deleted_at: MADE_AT })
  expect(await find()).toMatchObject({ hasAccount: false, isLiving: false, isEmailVerified: true })
  expect(await find(newId(), [], newId())).toMatchObject({ hasAccount: false, isLiving: false, asked: [] })
})

test('an account is found, locked, renamed and deleted alone, within the scope of the caller, until it is deleted', async () => {
  await using database = await createTestDatabase()
  const { db, pool } = database
  const by = await buildIdentityRows(db).user()
  const make = (name: string) => insertAccount(db, { id: newId<AccountId>(), name, by, now: MADE_AT })
  const [account, beside] = [await make('One'), await make('Two')]
  expect(account).toMatchObject({ name: 'One', createdBy: by, updatedBy: by, createdAt: MADE_AT, updatedAt: MADE_AT })
  const { id } = account
  const [own, foreign] = [
    { id, scope: [id] },
    { id, scope: [beside.id] },
  ]
  const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)
  const locks = [
    (tx: Database) => keepAccount(tx, { id }),
    (tx: Database) => lockForRename(tx, withinScope(own)),
    (tx: Database) => lockForRename(tx, withinScope({ id, scope: 'all' })),
  ]
  for (const lock of locks)
    await write(async (tx) => {
      expect(await lock(tx)).toEqual(account)
      const free = 'select document_id from account where document_id = any($1) for update skip locked'
      expect((await pool.query(free, [[id, beside.id]])).rows).toEqual([{ document_id: beside.id }])
    })
  // Other members may be added beside one that keeps it.
  await write(async (tx) => {
    await keepAccount(tx, { id })
    expect((await pool.query('select from account where document_id = $1 for share nowait', [id])).rowCount).toBe(1)
  })
  expect(await write((tx) => lockForRename(tx, withinScope(foreign)))).toBeUndefined()

  const rename = (target: typeof own, name: string) =>
    renameIfDifferent(db, { ...withinScope(target), name, by, now: madeAfter(1) })
  expect([await rename(foreign, 'Other'), await rename(own, 'One')]).toEqual([undefined, undefined])
  const renamed = { ...account, name: 'Other', updatedAt: madeAfter(1) }
  expect(await rename(own, 'Other')).toEqual(renamed)
  expect([await findAccount(db, { id }), await findAccount(db, { id: beside.id })]).toEqual([renamed, beside])

  const remove = (target: typeof own) => softDeleteAccount(db, { ...withinScope(target), by, now: madeAfter(2) })
  expect(await remove(foreign)).toBeUndefined()
  expect((await selectAccounts(db, sql<string>`${id}`).execute()).map((row) => row.name)).toEqual(['Other'])
  expect(await remove(own)).toMatchObject({ id, updatedAt: madeAfter(2) })
  expect([await remove(own), await findAccount(db, { id }), await keepAccount(db, { id })]).toEqual(
    Array(3).fill(undefined),
  )
  expect([await rename(own, 'Third'), await write((tx) => lockForRename(tx, withinScope(own)))]).toEqual([
    undefined,
    undefined,
  ])
  expect(await selectAccounts(db).execute()).toEqual([beside])
})
