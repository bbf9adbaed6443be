import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import type { AccountId, UserId } from '../../../base/id.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import { listAdministeredAccounts, lockAdministeredAccounts } from './own-user.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const ROLE = 'boss'

test('the accounts that a user administers are those where it has the role itself, and that are there', async () => {
  await using database = await createTestDatabase()
  const { db, pool } = database
  const times = { created_at: NOW, updated_at: NOW }
  const roles = Object.fromEntries(['boss', 'clerk'].map((name) => [name, randomUUID() as string]))
  for (const [name, id] of Object.entries(roles))
    await db
      .insertInto('role')
      .values({ document_id: id, name, ...times })
      .execute()
  const makeUser = async () => {
    const id = randomUUID() as string as UserId
    await db
      .insertInto('user')
      .values({ document_id: id, email: `${id}@b.test`, ...times })
      .execute()
    return id
  }
  const [user, other] = [await makeUser(), await makeUser()]
  const makeAccount = async (name: string) => {
    const id = randomUUID() as string as AccountId
    await db
      .insertInto('account')
      .values({ document_id: id, name, ...times })
      .execute()
    return id
  }
  const join = async (account: AccountId, of: UserId, ...names: string[]) => {
    const member = randomUUID()
    await pool.query(
      'insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, $4, $4)',
      [member, account, of, NOW],
    )
    for (const name of names)
      await pool.query('insert into account_member_role (member, role, created_at) values ($1, $2, $3)', [
        ...[member, roles[name], NOW],
      ])
  }
  const [alone, shared, plain, foreign, gone] = [
    await makeAccount('alone'),
    await makeAccount('shared'),
    await makeAccount('plain'),
    await makeAccount('foreign'),
    await makeAccount('gone'),
  ] as const
  await join(alone, user, 'boss')
  await join(alone, other, 'clerk')
  await join(shared, user, 'clerk', 'boss')
  await join(shared, other, 'boss')
  await join(plain, user, 'clerk')
  await join(plain, other, 'boss')
  await join(foreign, other, 'boss')
  await join(gone, user, 'boss')
  await pool.query('update account set deleted_at = $2 where document_id = $1', [gone, NOW])

  const list = async () =>
    Object.fromEntries(
      (await listAdministeredAccounts(db, { userId: user, role: ROLE })).map(({ name, hasOther }) => [name, hasOther]),
    )
  expect(
    (await inTransaction(db, (tx) => lockAdministeredAccounts(tx, { userId: user, role: ROLE }))).toSorted(),
  ).toEqual([alone, shared].toSorted())
  expect(await list()).toEqual({ alone: false, shared: true })
  await pool.query('update "user" set is_actived = false where document_id = $1', [other])
  expect(await list()).toEqual({ alone: false, shared: false })
  await pool.query('update "user" set is_actived = true, deleted_at = $2 where document_id = $1', [other, NOW])
  expect(await list()).toEqual({ alone: false, shared: false })
})
