import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { madeAfter } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { syncPermissions, toPermissionRow } from './permission.store.ts'

const database = await openForFile(createTestDatabase())
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
