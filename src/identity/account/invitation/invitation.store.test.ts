import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../../test/harness/database/database.ts'
import { whileHeld } from '../../../../test/harness/plan/lock-waits.ts'
import type { AccountId, UserId } from '../../../base/id.ts'
import { type Database, inTransaction } from '../../../postgres/statement/database.ts'
import {
  countInvitations,
  deleteEndedInvitations,
  findActiveUser,
  findInvitation,
  findOpenInvitation,
  hasOpenInvitation,
  type InvitationId,
  markAccepted,
  replaceInvitation,
  revokeOpenInvitation,
  selectInvitations,
} from './invitation.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const at = (ms: number) => new Date(NOW.getTime() + ms)
const LATER = at(60_000)
const newId = <T extends string>() => randomUUID() as string as T

let database: TestDatabase
let db: Database
let account: AccountId
let other: AccountId
/** The user who invites, and is invited. */
const inviter = newId<UserId>()

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  const row = { document_id: inviter, email: 'inviter@b.test', created_at: NOW, updated_at: NOW }
  await db.insertInto('user').values(row).execute()
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  ;[account, other] = [newId<AccountId>(), newId<AccountId>()]
  for (const id of [account, other])
    await db.insertInto('account').values({ document_id: id, name: id, created_at: NOW, updated_at: NOW }).execute()
})

const invite = async (email: string, given: { of?: AccountId; expiresAt?: Date; now?: Date } = {}) => {
  const { of = account, expiresAt = LATER, now = NOW } = given
  const tokenHash = randomBytes(32)
  const made = await inTransaction(db, async (tx) => {
    const row = { id: newId<InvitationId>(), account: of, email, roles: [], tokenHash, invitedBy: inviter }
    const written = await replaceInvitation(tx, { ...row, tokenPatterns: [], expiresAt, now })
    await findInvitation(tx, written)
    return written
  })
  return { made, tokenHash }
}
const isOpen = async (tokenHash: Buffer, now = NOW) => {
  const found = await Promise.all(
    [true, false].map((lock) => inTransaction(db, (tx) => findOpenInvitation(tx, { tokenHash, now, lock }))),
  )
  expect(found[0]).toEqual(found[1])
  return found[0] !== undefined
}
const isInvited = async (email: string, now = NOW) =>
  (await database.pool.query(`select ${hasOpenInvitation('$1', '$2::timestamptz')} as is_invited`, [email, now]))
    .rows[0].is_invited

test('an invitation is one of its account alone', async () => {
  const [{ made }, { made: beside }] = [await invite('ada@b.test'), await invite('bob@b.test')]
  expect(await findInvitation(db, made)).toEqual(made)
  expect(await findInvitation(db, beside)).toEqual(beside)
  expect(await findInvitation(db, { id: made.id, account: other })).toBeUndefined()
  expect(await revokeOpenInvitation(db, { id: made.id, account: other, now: at(1) })).toBeUndefined()
  expect(await findInvitation(db, made)).toEqual(made)
})

test('an invitation is revoked alone, and once', async () => {
  const [{ made, tokenHash }, { tokenHash: beside }] = [await invite('ada@b.test'), await invite('bob@b.test')]
  const { tokenHash: elsewhere } = await invite('ada@b.test', { of: other })
  const key = { id: made.id, account, now: at(1) }
  const revoked = { ...made, revokedAt: at(1), updatedAt: at(1) }
  expect(await revokeOpenInvitation(db, key)).toEqual(revoked)
  expect(await revokeOpenInvitation(db, { ...key, now: at(2) })).toBeUndefined()
  expect([await isOpen(tokenHash), await isOpen(beside), await isOpen(elsewhere)]).toEqual([false, true, true])
})

test('an accepted invitation opens nothing, is not revoked, and no other is accepted', async () => {
  const [{ made, tokenHash }, { tokenHash: beside }] = [await invite('ada@b.test'), await invite('bob@b.test')]
  await inTransaction(db, async (tx) => {
    await markAccepted(tx, { id: made.id, by: inviter, now: at(1) })
    await findInvitation(tx, made)
  })
  expect(await findInvitation(db, made)).toEqual({ ...made, acceptedAt: at(1), acceptedBy: inviter, updatedAt: at(1) })
  expect([await isOpen(tokenHash), await isOpen(beside)]).toEqual([false, true])
  expect(await revokeOpenInvitation(db, { id: made.id, account, now: at(2) })).toBeUndefined()
})

test('a second invitation of one address takes the place of the first, in its account alone', async () => {
  const first = await invite('Ada@b.test')
  const beside = [await invite('bob@b.test'), await invite('ada@b.test', { of: other })]
  const second = await invite('ada@B.test')
  const open = await Promise.all([first, second, ...beside].map(({ tokenHash }) => isOpen(tokenHash)))
  expect(open).toEqual([false, true, true, true])
})

test('a second invitation revokes the first, and changes none that was accepted or revoked before', async () => {
  const { made: accepted } = await invite('ada@b.test')
  await inTransaction(db, async (tx) => {
    await markAccepted(tx, { id: accepted.id, by: inviter, now: at(1) })
    await findInvitation(tx, accepted)
  })
  const made = []
  for (const ms of [2, 3, 4]) made.push((await invite('ada@b.test', { now: at(ms) })).made)
  const found = await Promise.all([accepted, ...made].map((row) => findInvitation(db, row)))
  expect(found.map((row) => [row?.revokedAt, row?.updatedAt])).toEqual([
    [null, at(1)],
    [at(3), at(3)],
    [at(4), at(4)],
    [null, at(4)],
  ])
})

test('the invitations of an account are listed, those of no other, and none once it is deleted', async () => {
  const [{ made }] = [await invite('ada@b.test'), await invite('bob@b.test', { of: other })]
  expect(await selectInvitations(db, account).execute()).toEqual([made])
  await database.pool.query('update account set deleted_at = $2 where document_id = $1', [account, NOW])
  expect(await selectInvitations(db, account).execute()).toEqual([])
  expect(await selectInvitations(db, other).execute()).toMatchObject([{ email: 'bob@b.test' }])
})

test('an invitation that is being used is held with its account, and only then', async () => {
  const { tokenHash } = await invite('ada@b.test')
  await invite('bob@b.test')
  const find = (tx: Database, lock = true) => findOpenInvitation(tx, { tokenHash, now: NOW, lock })
  const held = (work: () => Promise<unknown>) => whileHeld(db, (tx) => find(tx), work)
  expect(await held(() => inTransaction(db, (tx) => find(tx)))).toMatchObject({ email: 'ada@b.test' })
  await held(() => database.pool.query('update account set updated_at = $2 where document_id = $1', [account, NOW]))
  const read = await inTransaction(db, async (tx) => {
    await find(tx)
    return find(db, false)
  })
  expect(read).toMatchObject({ email: 'ada@b.test' })
  const beside = await inTransaction(db, async (tx) => {
    await tx.selectFrom('account').select('name').where('document_id', '=', other).forUpdate().execute()
    return inTransaction(db, (tx) => find(tx))
  })
  expect(beside).toMatchObject({ email: 'ada@b.test' })
})

test('invitations are deleted by the first of their ends, in batches, the oldest first', async () => {
  await database.pool.query('delete from account_invitation')
  const end = async (email: string, columns: string) => {
    await invite(email)
    await database.pool.query(`update account_invitation set ${columns} where email = $1`, [email])
  }
  await end('expired@b.test', `expires_at = '${at(-1).toISOString()}'`)
  await end('accepted@b.test', `accepted_at = '${at(-3).toISOString()}'`)
  await end('revoked@b.test', `revoked_at = '${at(-2).toISOString()}'`)
  await end('open@b.test', 'accepted_by = null')
  const left = async () =>
    (await database.pool.query('select email from account_invitation order by email')).rows.map(({ email }) => email)
  expect(await deleteEndedInvitations(db, NOW, 2)).toBe(2)
  expect(await left()).toEqual(['expired@b.test', 'open@b.test'])
  expect(await deleteEndedInvitations(db, NOW, 2)).toBe(1)
  expect(await left()).toEqual(['open@b.test'])
})

test('an invitation is open until the instant at which it expires, while its account is there', async () => {
  const { tokenHash } = await invite('ada@b.test')
  expect([await isOpen(tokenHash, at(59_999)), await isOpen(tokenHash, LATER)]).toEqual([true, false])
  await database.pool.query('update account set deleted_at = $2 where document_id = $1', [account, NOW])
  expect(await isOpen(tokenHash)).toBe(false)
})

test('an address is invited by an open invitation to it, in any case, of an account that is there', async () => {
  const email = `${newId()}@b.test`
  expect(await isInvited(email)).toBe(false)
  const { made } = await invite(email.toUpperCase())
  expect([await isInvited(email), await isInvited(`other-${email}`)]).toEqual([true, false])
  expect([await isInvited(email, at(59_999)), await isInvited(email, LATER)]).toEqual([true, false])
  await database.pool.query('update account set deleted_at = $2 where document_id = $1', [account, NOW])
  expect(await isInvited(email)).toBe(false)
  const { made: elsewhere } = await invite(email, { of: other })
  expect(await isInvited(email)).toBe(true)
  await revokeOpenInvitation(db, { id: elsewhere.id, account: other, now: NOW })
  expect(await isInvited(email)).toBe(false)
  await invite(email, { of: other })
  expect(await isInvited(email)).toBe(true)
  await database.pool.query('update account_invitation set accepted_at = $2 where account = $1', [other, NOW])
  expect(await isInvited(email)).toBe(false)
  expect(made.account).toBe(account)
})

test('an account counts its open invitations to other addresses, and all that it made since a time', async () => {
  for (const email of ['ada@b.test', 'bob@b.test', 'cid@b.test']) await invite(email)
  await invite('dan@b.test', { of: other })
  const count = (given: { email?: string; now?: Date; since?: Date } = {}) =>
    inTransaction(db, (tx) => countInvitations(tx, account, { email: 'eve@b.test', now: NOW, since: at(-1), ...given }))
  expect(await count()).toEqual({ open: 3, recent: 3, recentTo: 0 })
  expect(await count({ email: 'Ada@b.test' })).toEqual({ open: 2, recent: 3, recentTo: 1 })
  expect(await count({ since: NOW })).toEqual({ open: 3, recent: 0, recentTo: 0 })
  expect(await count({ email: 'ada@b.test', since: NOW })).toEqual({ open: 2, recent: 0, recentTo: 0 })
  expect(await count({ now: at(59_999) })).toMatchObject({ open: 3 })
  expect(await count({ now: LATER })).toMatchObject({ open: 0 })
  const { made } = await invite('ada@b.test')
  await revokeOpenInvitation(db, { id: made.id, account, now: NOW })
  expect(await count()).toMatchObject({ open: 2, recent: 4 })
  await database.pool.query(`update account_invitation set accepted_at = $1 where email = 'bob@b.test'`, [NOW])
  expect(await count()).toMatchObject({ open: 1, recent: 4 })
})

test('the holdings of a user are found while it is active', async () => {
  const users = ['active', 'disabled', 'deleted'].map((name) => ({ name, id: newId<UserId>() }))
  for (const { name, id } of users)
    await db
      .insertInto('user')
      .values({
        ...{ document_id: id, email: `${id}@b.test`, is_actived: name !== 'disabled' },
        ...{ deleted_at: name === 'deleted' ? NOW : null, created_at: NOW, updated_at: NOW },
      })
      .execute()
  const found = await Promise.all(users.map(async ({ id }) => (await findActiveUser(db, { id }))?.email))
  expect(found).toEqual([`${users[0]?.id}@b.test`, undefined, undefined])
})
