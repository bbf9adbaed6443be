import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { UserId } from '../../../base/id.ts'
import { type Database, inTransaction } from '../../../postgres/statement/database.ts'
import {
  countFactors,
  deleteFactors,
  findFactors,
  findPresentPassword,
  lockHasFactor,
  replaceRecoveryCodes,
  takeRecoveryCode,
} from './second-factor.store.ts'
import {
  deleteTotp,
  enrolTotp,
  findTotp,
  listStaleTotps,
  replaceTotpSecret,
  type TotpFactorId,
  takeTotpStep,
} from './totp-factor.store.ts'

let user: UserId
let other: UserId
const database = await openForFile(createTestDatabase())
const { db } = database
const rows = buildIdentityRows(db)
beforeEach(async () => {
  await database.pool.query('delete from totp_factor')
  ;[user, other] = [await rows.user({ password_hash: 'hash' }), await rows.user()]
})

const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)
const enrol = (userId = user, now = MADE_AT, secretEncrypted = 'sealed') =>
  enrolTotp(db, { id: newId<TotpFactorId>(), userId, secretEncrypted, now })
const addPasskey = (userId: UserId) =>
  database.pool.query(
    `insert into passkey (document_id, "user", credential_id, public_key, counter, transports, name, is_backup_eligible,
       is_backed_up, created_at, updated_at)
     values ($1, $2, $3, '', 0, '{}', 'key', false, false, $4, $4)`,
    [newId(), userId, randomBytes(16).toString('base64url'), MADE_AT],
  )
const hashes = [1, 2, 3].map((fill) => Buffer.alloc(32, fill)) as [Buffer, Buffer, Buffer]
const replaceCodes = (userId: UserId, ...of: Buffer[]) =>
  write((tx) => replaceRecoveryCodes(tx, { userId, hashes: of, now: MADE_AT }))
const takeCode = async (userId: UserId, hash: Buffer) => takeRecoveryCode(db, { userId, hash, now: madeAfter(1) })

describe('an authenticator app', () => {
  const take = async (id: TotpFactorId, step: number, confirms = false, now = madeAfter(step)) =>
    takeTotpStep(db, { id, step, confirms, now })

  test('is enrolled anew until it is confirmed, each user its own', async () => {
    const [first, beside] = [await enrol(), await enrol(other)]
    const second = await enrol(user, madeAfter(1), 'sealed again')
    expect(second).toMatchObject({ email: `${user}@b.test`, factor: { secretEncrypted: 'sealed again' } })
    expect(second!.factor).toMatchObject({ createdAt: madeAfter(1), confirmedAt: null, lastStep: null })
    expect(second!.factor.id).not.toBe(first!.factor.id)
    expect(await findTotp(db, { userId: user })).toEqual(second!.factor)
    expect(await findTotp(db, { userId: other })).toEqual(beside!.factor)
    expect(await take(second!.factor.id, 5, true)).toBe(true)
    expect(await enrol()).toBeUndefined()
    expect(await findTotp(db, { userId: user })).toMatchObject({
      confirmedAt: madeAfter(5),
      lastStep: 5,
      lastUsedAt: madeAfter(5),
    })
  })

  test('takes each step once, none before a later one, and its first code alone confirms it', async () => {
    const { id } = (await enrol())!.factor
    const beside = (await enrol(other))!.factor
    expect(await take(id, 5)).toBe(false)
    expect(await take(id, 5, true)).toBe(true)
    expect(await take(id, 6, true)).toBe(false)
    expect([await take(id, 5), await take(id, 4), await take(id, 6), await take(id, 6)]).toEqual([
      ...[false, false, true, false],
    ])
    expect(await findTotp(db, { userId: user })).toMatchObject({
      confirmedAt: madeAfter(5),
      lastStep: 6,
      lastUsedAt: madeAfter(6),
    })
    expect(await findTotp(db, { userId: other })).toEqual(beside)
  })

  test('is removed alone, and says whether its user has a passkey', async () => {
    const { id } = (await enrol())!.factor
    const beside = (await enrol(other))!.factor
    await addPasskey(other)
    expect(await deleteTotp(db, { userId: user })).toEqual({ id, hasPasskey: false })
    expect(await deleteTotp(db, { userId: user })).toBeUndefined()
    expect(await deleteTotp(db, { userId: other })).toEqual({ id: beside.id, hasPasskey: true })
  })

  test('is sealed anew where an older key sealed it, in order', async () => {
    const ids: TotpFactorId[] = []
    for (const secret of ['new.1', 'old.2', 'old.3'])
      ids.push((await enrol(await rows.user(), MADE_AT, secret))!.factor.id)
    const stale = ids.slice(1).toSorted()
    const list = async (after: string | null, limit = 9) =>
      (await write((tx) => listStaleTotps(tx, { prefix: 'new.', after, limit }))).map(({ id }) => id)
    expect(await list(null)).toEqual(stale)
    expect(await list(null, 1)).toEqual(stale.slice(0, 1))
    expect(await list(stale[0]!)).toEqual(stale.slice(1))
    await replaceTotpSecret(db, stale[0]!, 'new.9')
    expect(await list(null)).toEqual(stale.slice(1))
  })
})

describe('a recovery code', () => {
  test('is used once, by its user alone, until the codes are replaced', async () => {
    await replaceCodes(user, hashes[0], hashes[1])
    await replaceCodes(other, hashes[2])
    expect([await takeCode(other, hashes[0]), await takeCode(user, hashes[2])]).toEqual([false, false])
    expect([await takeCode(user, hashes[0]), await takeCode(user, hashes[0])]).toEqual([true, false])
    expect([await countFactors(db, user), await countFactors(db, other)]).toMatchObject([
      ...[{ recoveryCodes: 1 }, { recoveryCodes: 1 }],
    ])
    await replaceCodes(user, hashes[2])
    expect([await takeCode(user, hashes[1]), await takeCode(other, hashes[2])]).toEqual([false, true])
    expect(await takeCode(user, hashes[2])).toBe(true)
  })
})

describe('the factors of a user', () => {
  test('are its own: an app once it is confirmed, its passkeys, and the codes that are left', async () => {
    const nothing = { hasTotp: false, passkeys: 0, recoveryCodes: 0 }
    expect(await findFactors(db, user)).toEqual({ factor: undefined, count: nothing })
    const { factor } = (await enrol())!
    for (const id of [other, user, user]) await addPasskey(id)
    expect(await findFactors(db, user)).toEqual({ factor, count: { ...nothing, passkeys: 2 } })
    await takeTotpStep(db, { id: factor.id, step: 1, confirms: true, now: MADE_AT })
    expect(await countFactors(db, user)).toEqual({ ...nothing, hasTotp: true, passkeys: 2 })
    expect(await countFactors(db, other)).toEqual({ ...nothing, passkeys: 1 })
  })

  test('count once one is confirmed', async () => {
    const has = (id = user) => write((tx) => lockHasFactor(tx, { userId: id }))
    const { factor } = (await enrol())!
    expect([await has(), await has(other)]).toEqual([false, false])
    await takeTotpStep(db, { id: factor.id, step: 1, confirms: true, now: MADE_AT })
    expect([await has(), await has(other)]).toEqual([true, false])
    await addPasskey(other)
    expect(await has(other)).toBe(true)
  })

  test('are removed together, with the open challenges, of this user alone', async () => {
    for (const id of [user, other]) {
      await enrol(id)
      await addPasskey(id)
      await replaceCodes(id, hashes[0])
    }
    await write((tx) => deleteFactors(tx, { userId: user }))
    expect(await findFactors(db, user)).toEqual({
      ...{ factor: undefined, count: { hasTotp: false, passkeys: 0, recoveryCodes: 0 } },
    })
    expect(await findFactors(db, other)).toMatchObject({ factor: {}, count: { passkeys: 1, recoveryCodes: 1 } })
  })
})

test('the password of a user is present while the user is active', async () => {
  expect(await findPresentPassword(db, { userId: user })).toEqual({ passwordHash: 'hash' })
  expect(await findPresentPassword(db, { userId: other })).toEqual({ passwordHash: null })
  await rows.set('user', user, { is_actived: false })
  await rows.set('user', other, { deleted_at: MADE_AT })
  expect([await findPresentPassword(db, { userId: user }), await findPresentPassword(db, { userId: other })]).toEqual([
    undefined,
    undefined,
  ])
})
