import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { whileHeld } from '../../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { buildIdMaker, type UserId } from '../../../base/id.ts'
import { systemRandom } from '../../../base/random.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import {
  deletePasskey,
  findOtherWay,
  findPasskey,
  insertPasskey,
  type Passkey,
  recordPasskeyUse,
  renamePasskey,
} from './passkey.store.ts'

const clock = buildManualClock()
const ids = buildIdMaker(clock, systemRandom)
const now = () => new Date(clock.now())

async function addUser(db: Database, passwordHash: string | null = null): Promise<UserId> {
  const id = ids.next<'user'>() as UserId
  const at = { created_at: now(), updated_at: now() }
  const row = { document_id: id, email: `${id}@example.test`, password_hash: passwordHash, ...at }
  await db.insertInto('user').values(row).execute()
  return id
}

async function addPasskey(db: Database, userId: UserId, counter = 0): Promise<Passkey> {
  const id = ids.next<'passkey'>()
  const kind = { publicKey: Buffer.from([1]), transports: ['internal'], isBackupEligible: true, isBackedUp: false }
  const row = { ...kind, id, userId, credentialId: `credential-${id}`, counter, name: 'key', now: now() }
  return (await insertPasskey(db, row)) as Passkey
}

const read = async (db: Database, { credentialId }: Passkey) => (await findPasskey(db, { credentialId })) as Passkey

test('a use is recorded by a counter that grew, and of a passkey that does not count by 0 alone', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const userId = await addUser(db)
  const use = async (passkey: Passkey, counter: number) =>
    recordPasskeyUse(db, { id: passkey.id, counter, isBackedUp: true, now: now() })
  const counting = await addPasskey(db, userId, 7)
  for (const counter of [7, 6, 0]) expect(await use(counting, counter)).toBe(false)
  expect(await read(db, counting)).toEqual(counting)
  expect(await use(counting, 8)).toBe(true)
  expect(await use(counting, 8)).toBe(false)
  expect((await read(db, counting)).counter).toBe(8)

  const still = await addPasskey(db, userId, 0)
  expect([await use(still, 0), await use(still, 0), await use(still, 1), await use(still, 0)]).toEqual([
    true,
    true,
    true,
    false,
  ])
})

test('a use is kept with its counter, its backup and its time, of that passkey alone', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const userId = await addUser(db)
  const [used, other] = [await addPasskey(db, userId), await addPasskey(db, userId)]
  clock.advance(1000)
  expect(await recordPasskeyUse(db, { id: used.id, counter: 3, isBackedUp: true, now: now() })).toBe(true)
  const change = { counter: 3, isBackedUp: true, lastUsedAt: now(), updatedAt: now() }
  expect(await read(db, used)).toEqual({ ...used, ...change })
  expect(await read(db, other)).toEqual(other)
})

test('of two concurrent uses of one counter, the one that waits for the other is refused', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const passkey = await addPasskey(db, await addUser(db), 1)
  const use = (tx: Database) => recordPasskeyUse(tx, { id: passkey.id, counter: 2, isBackedUp: false, now: now() })
  const first = async (tx: Database) => expect(await use(tx)).toBe(true)
  expect(await whileHeld(db, first, () => use(db))).toBe(false)
})

test('a user renames a passkey of their own alone', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const [userId, stranger] = [await addUser(db), await addUser(db)]
  const [passkey, other] = [await addPasskey(db, userId), await addPasskey(db, userId)]
  clock.advance(1000)
  const rename = (by: UserId) => renamePasskey(db, { id: passkey.id, userId: by, name: 'new', now: now() })
  expect(await rename(stranger)).toBe(false)
  expect(await rename(userId)).toBe(true)
  expect(await read(db, passkey)).toEqual({ ...passkey, name: 'new', updatedAt: now() })
  expect(await read(db, other)).toEqual(other)
})

test('another way to sign in is an own password or an own identity', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const [alone, known] = [await addUser(db), await addUser(db, 'hash')]
  expect([await findOtherWay(db, { userId: alone }), await findOtherWay(db, { userId: known })]).toEqual([false, true])
  await addIdentity(db, alone)
  expect(await findOtherWay(db, { userId: alone })).toBe(true)
  expect(await findOtherWay(db, { userId: await addUser(db) })).toBe(false)
})

test('a removed passkey says what is left of its own user: a password, an identity, a passkey, an app', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const withEverything = await addUser(db, 'hash')
  await addIdentity(db, withEverything)
  await addPasskey(db, withEverything)
  await addApp(db, withEverything, now())
  const removeFrom = async (prepare: (userId: UserId) => Promise<unknown>, passwordHash: string | null = null) => {
    const userId = await addUser(db, passwordHash)
    const passkey = await addPasskey(db, userId)
    await prepare(userId)
    expect(await deletePasskey(db, passkey.id, withEverything)).toBeUndefined()
    const left = await deletePasskey(db, passkey.id, userId)
    expect(left?.removed).toEqual(passkey)
    expect(await findPasskey(db, passkey)).toBeUndefined()
    return left && [left.hasOtherWay, left.hasOtherFactor]
  }
  expect(await removeFrom(async () => {})).toEqual([false, false])
  expect(await removeFrom(async () => {}, 'hash')).toEqual([true, false])
  expect(await removeFrom((userId) => addIdentity(db, userId))).toEqual([true, false])
  expect(await removeFrom((userId) => addPasskey(db, userId))).toEqual([true, true])
  expect(await removeFrom((userId) => addApp(db, userId, now()))).toEqual([false, true])
  expect(await removeFrom((userId) => addApp(db, userId, null))).toEqual([false, false])
})

async function addIdentity(db: Database, userId: UserId): Promise<void> {
  const at = { created_at: now(), updated_at: now() }
  const row = { document_id: ids.next(), user: userId, provider: 'google', subject: userId, ...at }
  await db
    .insertInto('identity')
    .values({ ...row, is_email_verified: true })
    .execute()
}

async function addApp(db: Database, userId: UserId, confirmedAt: Date | null): Promise<void> {
  const at = { created_at: now(), updated_at: now() }
  await db
    .insertInto('totp_factor')
    .values({ document_id: ids.next(), user: userId, secret_encrypted: 'sealed', confirmed_at: confirmedAt, ...at })
    .execute()
}
