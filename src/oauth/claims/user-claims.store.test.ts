import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { findActiveUser } from './user-claims.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const at = (ms: number) => new Date(NOW.getTime() + ms)

test('a user has the account with the longest membership that is not deleted, until it is disabled or deleted', async () => {
  await using database = await createTestDatabase()
  const { db, pool } = database
  const times = { created_at: NOW, updated_at: NOW }
  const users = ['ada@b.test', 'bob@b.test'].map((email) => ({ id: randomUUID() as string, email }))
  const [ada, bob] = users as [(typeof users)[0], (typeof users)[0]]
  for (const { id, email } of users)
    await db
      .insertInto('user')
      .values({ document_id: id, email, ...times })
      .execute()
  const join = async (user: string, since: Date, isDeleted = false) => {
    const account = randomUUID() as string
    await pool.query(
      'insert into account (document_id, name, created_at, updated_at, deleted_at) values ($1, $4, $2, $2, $3)',
      [account, NOW, isDeleted ? NOW : null, account],
    )
    await pool.query(
      'insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, $4, $4)',
      [randomUUID(), account, user, since],
    )
    return account
  }
  await join(bob.id, at(-9))
  await join(ada.id, at(-3), true)
  const second = await join(ada.id, at(-2))
  await join(ada.id, at(-1))
  const claims = { id: ada.id, email: 'ada@b.test', isEmailVerified: false, firstAccount: second }
  expect(await findActiveUser(db, { id: ada.id })).toMatchObject(claims)
  await pool.query('update "user" set email_verified_at = $2 where document_id = $1', [ada.id, NOW])
  expect(await findActiveUser(db, { id: ada.id })).toMatchObject({ ...claims, isEmailVerified: true })
  await pool.query('update "user" set is_actived = false where document_id = $1', [ada.id])
  await pool.query('update "user" set deleted_at = $2 where document_id = $1', [bob.id, NOW])
  expect([await findActiveUser(db, { id: ada.id }), await findActiveUser(db, { id: bob.id })]).toEqual([
    undefined,
    undefined,
  ])
})
