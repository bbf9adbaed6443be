import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../../test/harness/database/identity-rows.ts'
import { whileHeld } from '../../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { UserId } from '../../../base/id.ts'
import { type Database, inTransaction } from '../../../postgres/statement/database.ts'
import {
  deleteExpiredProofTokens,
  deleteProofTokens,
  findProofCandidate,
  findProvenUser,
  insertProofToken,
  lockProvenUser,
  proveAddress,
} from './proof-token.store.ts'
import type { ProofPurpose } from './proof-token.ts'

let user: UserId
let other: UserId
const database = await openForFile(createTestDatabase())
const { db } = database
const rows = buildIdentityRows(db)
beforeEach(async () => {
  await database.pool.query('delete from proof_token')
  ;[user, other] = [await rows.user({ name: 'Ada' }), await rows.user()]
})

const emailOf = (id: UserId) => `${id}@b.test`
const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)
const insert = async (
  given: { of?: UserId | null; purpose?: ProofPurpose; email?: string; ends?: number; made?: number } = {},
) => {
  const { of = user, purpose = 'reset', email = emailOf(of ?? user), ends = 60_000, made = 0 } = given
  const tokenHash = randomBytes(32)
  const row = { tokenHash, purpose, userId: of, email, expiresAt: madeAfter(ends), now: madeAfter(made) }
  await write((tx) => insertProofToken(tx, row))
  return tokenHash
}
const find = async (tokenHash: Buffer, purpose: ProofPurpose = 'reset', now = MADE_AT) => {
  const asked = { tokenHash, purpose, now }
  const [found, locked] = [await findProvenUser(db, asked), await write((tx) => lockProvenUser(tx, asked))]
  expect(locked === undefined).toBe(found === undefined)
  if (locked) expect(locked).toMatchObject(found!)
  return locked
}

describe('a link', () => {
  test('proves its user, for its purpose, until it expires', async () => {
    const [reset, verify, foreign] = [
      await insert(),
      await insert({ purpose: 'verification' }),
      await insert({ of: other }),
    ]
    const proven = { userId: user, email: emailOf(user), name: 'Ada', isEmailVerified: false, sessions: 0, apiKeys: 0 }
    expect(await find(reset)).toEqual(proven)
    expect(await find(verify, 'verification')).toEqual(proven)
    expect(await find(foreign)).toMatchObject({ userId: other, name: null })
    expect([await find(reset, 'verification'), await find(verify, 'reset'), await find(randomBytes(32))]).toEqual([
      ...[undefined, undefined, undefined],
    ])
    expect(await find(reset, 'reset', madeAfter(59_999))).toBeDefined()
    expect(await find(reset, 'reset', madeAfter(60_000))).toBeUndefined()
  })

  test.each<[name: string, columns: object]>([
    ['the user is disabled', { is_actived: false }],
    ['the user is deleted', { deleted_at: MADE_AT }],
    ['the address is another one', { email: 'another@b.test' }],
  ])('proves nothing once %s', async (_name, columns) => {
    const tokenHash = await insert()
    expect(await find(tokenHash)).toBeDefined()
    await rows.set('user', user, columns)
    expect(await find(tokenHash)).toBeUndefined()
  })

  test('proves an address in any case', async () => {
    expect(await find(await insert({ email: emailOf(user).toUpperCase() }))).toMatchObject({ userId: user })
  })

  test('that is used locks its user alone, who is locked until then', async () => {
    const tokenHash = await insert()
    await insert({ of: other })
    const lock = (tx: Database) => lockProvenUser(tx, { tokenHash, purpose: 'reset', now: MADE_AT })
    expect(await whileHeld(db, lock, () => write(lock))).toMatchObject({ userId: user })
    const beside = await write(async (tx) => {
      await tx.selectFrom('user').select('email').where('document_id', '=', other).forUpdate().execute()
      return write(lock)
    })
    expect(beside).toMatchObject({ userId: user })
  })

  test('for nobody is not kept', async () => {
    expect(await find(await insert({ of: null }))).toBeUndefined()
  })

  test('for a reset counts the sessions and keys that it ends, of its user alone', async () => {
    const [tokenHash, verify] = [await insert(), await insert({ purpose: 'verification' })]
    for (const holder of [user, user, other]) await rows.session(holder)
    await rows.session(user, { revoked_at: MADE_AT })
    for (const holder of [user, other]) await rows.apiKey(holder)
    await rows.apiKey(user, { revoked_at: MADE_AT })
    expect(await find(tokenHash)).toMatchObject({ sessions: 2, apiKeys: 1 })
    expect(await find(verify, 'verification')).toMatchObject({ sessions: 0, apiKeys: 0 })
  })

  test('is used up with all others of its purpose, of its user alone', async () => {
    const [first, second] = [await insert(), await insert()]
    const [verify, foreign] = [await insert({ purpose: 'verification' }), await insert({ of: other })]
    await write((tx) => deleteProofTokens(tx, { userId: user, purpose: 'reset' }))
    expect([await find(first), await find(second)]).toEqual([undefined, undefined])
    expect([await find(verify, 'verification'), await find(foreign)]).toMatchObject([
      { userId: user },
      { userId: other },
    ])
  })

  test('is deleted once it has expired, in batches, the oldest first', async () => {
    for (const ends of [2, 1, 3]) await insert({ ends })
    const ends = async () =>
      (await database.pool.query('select expires_at from proof_token order by 1')).rows.map(
        (row) => row.expires_at.getTime() - MADE_AT.getTime(),
      )
    expect(await deleteExpiredProofTokens(db, madeAfter(3), 1)).toBe(1)
    expect(await ends()).toEqual([2, 3])
    expect(await deleteExpiredProofTokens(db, madeAfter(3), 5)).toBe(1)
    expect(await ends()).toEqual([3])
  })
})

test('who asks for a link is an active user, by its address or its id, with its links since a time', async () => {
  await insert({ made: 1 })
  await insert({ made: 2 })
  await insert({ made: 2, purpose: 'verification' })
  await insert({ made: 2, of: other })
  const ask = (by: { email: string } | { userId: UserId }, since = 0) =>
    write((tx) => findProofCandidate(tx, by, { purpose: 'reset', since: madeAfter(since), limit: 5 }))
  const candidate = { userId: user, email: emailOf(user), emailVerifiedAt: null, recent: 2, room: 6 }
  expect(await ask({ userId: user })).toEqual(candidate)
  expect(await ask({ email: emailOf(user).toUpperCase() })).toEqual(candidate)
  expect([await ask({ userId: user }, 1), await ask({ userId: user }, 2)]).toMatchObject([{ recent: 1 }, { recent: 0 }])
  expect(await ask({ userId: newId<UserId>() })).toBeUndefined()
  await rows.set('user', user, { is_actived: false })
  await rows.set('user', other, { deleted_at: MADE_AT })
  for (const by of [{ userId: user }, { email: emailOf(user) }, { userId: other }, { email: emailOf(other) }])
    expect(await ask(by)).toBeUndefined()
})

test('an address is verified once, of its user alone', async () => {
  const verify = (ms: number) => write((tx) => proveAddress(tx, { userId: user, now: madeAfter(ms) }))
  const read = async (id: UserId) => {
    const text = 'select email_verified_at, updated_at from "user" where document_id = $1'
    return (await database.pool.query(text, [id])).rows[0]
  }
  await verify(1)
  await verify(2)
  expect(await read(user)).toEqual({ email_verified_at: madeAfter(1), updated_at: madeAfter(1) })
  expect(await read(other)).toEqual({ email_verified_at: null, updated_at: MADE_AT })
})
