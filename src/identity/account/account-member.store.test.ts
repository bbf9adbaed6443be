import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT } from '../../../test/harness/database/identity-rows.ts'
import { findMembersAmong, selectAccountMembers } from './account-member.store.ts'

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
  const among = (of: string, ...users: string[]) => findMembersAmong(db, of, users)
  expect(await among(account, ada, stranger)).toEqual([ada])
  expect(await among(other, stranger)).toEqual([stranger])
  await rows.set('account', account, { deleted_at: MADE_AT })
  expect(await list()).toEqual({})
})
