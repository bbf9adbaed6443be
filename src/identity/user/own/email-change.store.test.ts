import { randomBytes, randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { SessionId, UserId } from '../../../base/id.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import {
  confirmEmailChange,
  deleteOldEmailChanges,
  endEmailChange,
  findOwnUser,
  lockConfirmedChange,
  lockForEmailChange,
  type NewEmailChange,
  replaceEmailChange,
} from './email-change.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const at = (ms: number) => new Date(NOW.getTime() + ms)
const LATER = at(60_000)

let user: UserId
let other: UserId

const database = await openForFile(createTestDatabase())
const { db } = database
beforeEach(async () => {
  await database.pool.query('delete from email_change')
  ;[user, other] = [await makeUser(), await makeUser()]
})

const emailOf = (id: UserId) => `${id}@b.test`

async function makeUser(): Promise<UserId> {
  const id = randomUUID() as string as UserId
  await db
    .insertInto('user')
    .values({ document_id: id, email: emailOf(id), created_at: NOW, updated_at: NOW })
    .execute()
  return id
}
const set = (assignment: string, id = user) =>
  database.pool.query(`update "user" set ${assignment} where document_id = $1`, [id])

async function ask(userId = user, more: Partial<NewEmailChange> = {}): Promise<NewEmailChange> {
  const row: NewEmailChange = {
    ...{ id: randomUUID(), userId, session: randomUUID() as string as SessionId, now: NOW, expiresAt: LATER },
    ...{ newEmail: `new-${userId}@b.test`, oldEmail: emailOf(userId) },
    ...{ newTokenHash: randomBytes(32), oldTokenHash: randomBytes(32), ...more },
  }
  await inTransaction(db, async (tx) => {
    await lockForEmailChange(tx, { userId, since: NOW })
    await replaceEmailChange(tx, row)
  })
  return row
}
const find = (tokenHash: Buffer, now = NOW) => inTransaction(db, (tx) => lockConfirmedChange(tx, { tokenHash, now }))
const openOf = async (id = user, now = NOW) => (await findOwnUser(db, { id, now }))?.emailChange
const end = (id = user, now = NOW) => inTransaction(db, (tx) => endEmailChange(tx, { userId: id, now }))
const confirm = (id: string, isNew: boolean) => inTransaction(db, (tx) => confirmEmailChange(tx, { id, isNew }))

test('a change is open for its user alone until it expires, ends, or the address is another one', async () => {
  const { newEmail } = await ask()
  const open = { newEmail, isNewConfirmed: false, isOldConfirmed: false, askedAt: NOW, validUntil: LATER }
  expect([await openOf(), await openOf(other)]).toEqual([open, null])
  expect([await openOf(user, at(59_999)), await openOf(user, LATER)]).toEqual([open, null])
  await set(`email = 'third-${user}@b.test'`)
  expect(await openOf()).toBeNull()
  await set(`email = upper('${emailOf(user)}')`)
  expect(await openOf()).toEqual(open)
  await end()
  expect(await openOf()).toBeNull()
  await set('deleted_at = now()')
  expect(await findOwnUser(db, { id: user, now: NOW })).toBeUndefined()
})

test('the end of a change says whether one was open, and leaves that of another user', async () => {
  await ask()
  await ask(other)
  expect([await end(user, LATER), await end(), await end()]).toEqual([false, true, false])
  expect(await openOf(other)).toMatchObject({ askedAt: NOW })
})

test('a change takes the place of the open one of its user', async () => {
  const [first, beside] = [await ask(), await ask(other)]
  const second = await ask(user, { now: at(1), newEmail: `next-${user}@b.test` })
  expect(await openOf()).toMatchObject({ newEmail: second.newEmail, askedAt: at(1) })
  const found = await Promise.all([first, second, beside].map((row) => find(row.newTokenHash, at(2))))
  expect(found.map((row) => row?.id)).toEqual([undefined, second.id, beside.id])
})

test('each link finds its change, and is used up alone', async () => {
  const [row, beside] = [await ask(), await ask(other)]
  const { id, session, newEmail } = row
  const facts = { id, userId: user, session, newEmail, isTaken: false, isClosedThere: false }
  expect(await find(row.newTokenHash)).toEqual({ ...facts, isNew: true, isOtherConfirmed: false })
  expect(await find(row.oldTokenHash)).toEqual({ ...facts, isNew: false, isOtherConfirmed: false })
  await confirm(row.id, true)
  expect(await find(row.newTokenHash)).toBeUndefined()
  expect(await find(row.oldTokenHash)).toEqual({ ...facts, isNew: false, isOtherConfirmed: true })
  expect(await openOf()).toMatchObject({ isNewConfirmed: true, isOldConfirmed: false })
  await confirm(row.id, false)
  expect(await find(row.oldTokenHash)).toBeUndefined()
  expect([await find(beside.newTokenHash), await find(beside.oldTokenHash)]).toMatchObject([
    { id: beside.id },
    { id: beside.id },
  ])
})

test.each([
  ['the user is disabled', () => set('is_actived = false')],
  ['the user is deleted', () => set('deleted_at = now()')],
  ['the address is another one', () => set(`email = 'other-address@b.test'`)],
  ['the change was ended', () => end()],
])('a link finds nothing once %s', async (_name, act) => {
  const { newTokenHash } = await ask()
  expect(await find(newTokenHash)).toBeDefined()
  await act()
  expect(await find(newTokenHash)).toBeUndefined()
})

test('a link finds nothing once it has expired', async () => {
  const { newTokenHash } = await ask()
  expect([await find(newTokenHash, at(59_999)), await find(newTokenHash, LATER)]).toEqual([
    expect.anything(),
    undefined,
  ])
})

test('a new address is taken by another user who is there, not by the user itself', async () => {
  const isTaken = async (newEmail: string) => (await find((await ask(user, { newEmail })).newTokenHash))?.isTaken
  expect([await isTaken(emailOf(other).toUpperCase()), await isTaken(emailOf(user).toUpperCase())]).toEqual([
    true,
    false,
  ])
  await set('deleted_at = now()', other)
  expect(await isTaken(emailOf(other))).toBe(false)
})

test('changes are counted of a user since a time, and are deleted once they are old', async () => {
  await ask()
  await ask(user, { now: at(1) })
  await ask(user, { now: at(2) })
  await ask(other, { now: at(2) })
  const count = async (since: Date) =>
    (await inTransaction(db, (tx) => lockForEmailChange(tx, { userId: user, since })))?.recent
  expect([await count(at(-1)), await count(NOW), await count(at(1)), await count(at(2))]).toEqual([3, 2, 1, 0])
  expect(await deleteOldEmailChanges(db, at(2), 1)).toBe(1)
  expect(await count(at(-1))).toBe(2)
  expect(await deleteOldEmailChanges(db, at(2), 5)).toBe(1)
  expect(await count(at(-1))).toBe(1)
  expect(await inTransaction(db, (tx) => lockForEmailChange(tx, { userId: user, since: NOW }))).toMatchObject({
    email: emailOf(user),
  })
  await set('deleted_at = now()')
  expect(await inTransaction(db, (tx) => lockForEmailChange(tx, { userId: user, since: NOW }))).toBeUndefined()
})
