import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter } from '../../../test/harness/database/identity-rows.ts'
import { whileLockedInOrder } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { UserId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  admitMailLogin,
  admitSignUp,
  deleteExpiredAddressProofs,
  describeSignUpAddress,
  endMailLogins,
  findAddressProof,
  findMailLogin,
  type NewAddressProof,
  takeAddressProof,
  tryMailLogin,
} from './address-proof.store.ts'

let user: UserId
const database = await openForFile(createTestDatabase())
const { db } = database
const rows = buildIdentityRows(db)
beforeEach(async () => {
  await database.pool.query('delete from address_proof')
  user = await rows.user({ email_verified_at: MADE_AT })
})

const emailOf = (id: UserId) => `${id}@b.test`
const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)
/** A proof within limits that are never reached, of a sign-up unless told otherwise. */
const build = (email: string, more: Partial<NewAddressProof> = {}): NewAddressProof => ({
  ...{ tokenHash: randomBytes(32), purpose: 'sign-up', email, codeHash: null, browser: null, redirectUrl: null },
  ...{ next: null, expiresAt: madeAfter(60_000), now: MADE_AT, loginHash: null, isKnownBrowser: false },
  ...{ network: randomBytes(32), wideNetwork: randomBytes(32), addressLimit: 100, networkLimit: 100 },
  ...{ wideNetworkLimit: 100, totalLimit: 1_000, ...more },
})
const signUp = async (email: string, more: Partial<NewAddressProof> = {}) => {
  const row = build(email, more)
  return { ...(await write((tx) => admitSignUp(tx, row))), ...row }
}
const signIn = async (email: string, more: Partial<NewAddressProof> = {}) => {
  const row = build(email, { purpose: 'sign-in', loginHash: randomBytes(32), codeHash: randomBytes(32), ...more })
  return { ...(await write((tx) => admitMailLogin(tx, row))), ...row, loginHash: row.loginHash! }
}
const isOpen = async ({ tokenHash, purpose }: NewAddressProof, now = MADE_AT) =>
  (await findAddressProof(db, { tokenHash, purpose, now })) !== undefined

describe('a proof', () => {
  test('is found by its token, for its purpose, until it expires', async () => {
    const browser = randomBytes(32)
    const kept = await signUp('ada@b.test', { browser, redirectUrl: 'https://app.test/', next: '/next' })
    await signUp('bob@b.test')
    const { tokenHash } = kept
    expect(await findAddressProof(db, { tokenHash, purpose: 'sign-up', now: madeAfter(59_999) })).toEqual({
      ...{ purpose: 'sign-up', email: 'ada@b.test', userId: null, codeHash: null, attempts: 0, browser },
      ...{ redirectUrl: 'https://app.test/', next: '/next', expiresAt: madeAfter(60_000), createdAt: MADE_AT },
    })
    expect(await isOpen(kept, madeAfter(60_000))).toBe(false)
    expect(await findAddressProof(db, { tokenHash, purpose: 'sign-in', now: MADE_AT })).toBeUndefined()
    expect(await isOpen({ ...kept, tokenHash: randomBytes(32) })).toBe(false)
  })

  test('is used up once, with each other one of its address and purpose', async () => {
    const [first, second] = [await signUp('ada@b.test'), await signUp('ADA@b.test')]
    const [beside, login] = [await signUp('bob@b.test'), await signIn('ada@b.test')]
    const take = (now = MADE_AT, purpose = first.purpose) =>
      takeAddressProof(db, { tokenHash: first.tokenHash, purpose, now })
    expect([await take(madeAfter(60_000)), await take(MADE_AT, 'sign-in')]).toEqual([undefined, undefined])
    expect(await take()).toMatchObject({ email: 'ada@b.test', purpose: 'sign-up' })
    expect(await take()).toBeUndefined()
    expect(await Promise.all([second, beside, login].map((proof) => isOpen(proof)))).toEqual([false, true, true])
  })

  test('is used up with the others in the order of their tokens, which each use locks', async () => {
    const hashes = [Buffer.alloc(32, 9), Buffer.alloc(32, 1)]
    for (const tokenHash of hashes) await signUp('ada@b.test', { tokenHash })
    const lock = (tokenHash: Buffer) => (tx: Database) =>
      tx.selectFrom('address_proof').select('email').where('token_hash', '=', tokenHash).forUpdate().execute()
    const taken = await whileLockedInOrder(db, { first: lock(hashes[1]!), last: lock(hashes[0]!) }, () =>
      takeAddressProof(db, { tokenHash: hashes[0]!, purpose: 'sign-up', now: MADE_AT }),
    )
    expect(taken).toMatchObject({ email: 'ada@b.test' })
  })

  test('has room for its mail while its address may get another one, and in a known browser by itself', async () => {
    const mail = (recipient: string, kind: string) =>
      database.pool.query(
        `insert into mail_outbox (document_id, kind, recipient, due_at, expires_at, created_at)
         values (gen_random_uuid(), $2, $1, now(), now(), now())`,
        [recipient, kind],
      )
    const email = emailOf(user)
    for (let sent = 1; sent < 6; sent += 1) await mail(email, 'sign-up')
    expect(await signUp(email)).toMatchObject({ refusal: null, hasRoom: true })
    await mail(email, 'sign-up')
    expect(await signUp(email)).toMatchObject({ refusal: null, hasRoom: false })
    expect(await signUp(email, { isKnownBrowser: true, browser: randomBytes(32) })).toMatchObject({ hasRoom: true })
    expect(await signIn(email)).toMatchObject({ hasRoom: true })
    for (let sent = 0; sent < 12; sent += 1) await mail(email, 'sign-in')
    expect(await signIn(email)).toMatchObject({ hasRoom: false })
  })

  test('is deleted once it has expired, in batches, the oldest first', async () => {
    for (const ms of [2, 1, 3]) await signUp(`${ms}@b.test`, { expiresAt: madeAfter(ms) })
    const left = async () =>
      (await database.pool.query('select email from address_proof order by 1')).rows.map((row) => row.email)
    expect(await deleteExpiredAddressProofs(db, madeAfter(3), 1)).toBe(1)
    expect(await left()).toEqual(['2@b.test', '3@b.test'])
    expect(await deleteExpiredAddressProofs(db, madeAfter(3), 5)).toBe(1)
    expect(await left()).toEqual(['3@b.test'])
  })
})

test('a sign-up tells whether a user has the address, in any case, until that user is deleted', async () => {
  const email = emailOf(user).toUpperCase()
  const told = async (of = email) => {
    const { isKnown, isInvited } = await signUp(of)
    expect(await describeSignUpAddress(db, { email: of, now: MADE_AT })).toEqual({ isKnown, isInvited })
    return isKnown
  }
  expect([await told(), await told('nobody@b.test')]).toEqual([true, false])
  await rows.set('user', user, { is_actived: false })
  expect(await told()).toBe(true)
  await rows.set('user', user, { deleted_at: MADE_AT })
  expect(await told()).toBe(false)
})

describe('a sign-in by mail', () => {
  const holderOf = async (email: string) => {
    const { userId, to } = await signIn(email)
    return { userId, to }
  }
  const nobody = { userId: null, to: null }

  test('is for the active user with the address, who has proved it or was given no password', async () => {
    expect(await holderOf(emailOf(user).toUpperCase())).toEqual({ userId: user, to: emailOf(user) })
    expect(await holderOf('nobody@b.test')).toEqual(nobody)
    const [plain, given] = [await rows.user(), await rows.user({ password_hash: 'hash' })]
    const proven = await rows.user({ password_hash: 'hash', email_verified_at: MADE_AT })
    const ids = await Promise.all([plain, given, proven].map(async (id) => (await holderOf(emailOf(id))).userId))
    expect(ids).toEqual([plain, null, proven])
  })

  test.each([
    ['disabled', { is_actived: false }],
    ['deleted', { deleted_at: MADE_AT }],
  ])('is for nobody once the user is %s', async (_name, columns) => {
    await rows.set('user', user, columns)
    expect(await holderOf(emailOf(user))).toEqual(nobody)
  })

  test('is found by the id of its client until it expires, and counts the codes that are tried', async () => {
    const [known, beside] = [await signIn(emailOf(user)), await signIn('nobody@b.test')]
    const find = (loginHash: Buffer, now = MADE_AT) => findMailLogin(db, { loginHash, now })
    expect(await find(known.loginHash)).toMatchObject({ email: emailOf(user), userId: user, codeHash: known.codeHash })
    expect(await find(known.loginHash, madeAfter(60_000))).toBeUndefined()
    expect(await find(known.tokenHash)).toBeUndefined()
    const attempt = (more: object) =>
      write((tx) => tryMailLogin(tx, { tokenHash: null, loginHash: null, now: MADE_AT, ...more }))
    expect(await attempt({ loginHash: known.loginHash })).toMatchObject({ attempts: 1, userId: user })
    expect(await attempt({ loginHash: known.loginHash })).toMatchObject({ attempts: 2 })
    // The link is no guess.
    expect(await attempt({ tokenHash: known.tokenHash })).toMatchObject({ attempts: 2, userId: user })
    expect(await find(beside.loginHash)).toMatchObject({ attempts: 0, userId: null })
    expect(await attempt({ loginHash: known.loginHash, now: madeAfter(60_000) })).toBeUndefined()
    expect(await attempt({ loginHash: randomBytes(32) })).toBeUndefined()
  })

  test('ends with every other one of its user, and no more', async () => {
    const other = await rows.user({ email_verified_at: MADE_AT })
    const logins = [await signIn(emailOf(user)), await signIn(emailOf(user)), await signIn(emailOf(other))]
    await write((tx) => endMailLogins(tx, { userId: user }))
    expect(await Promise.all(logins.map((login) => isOpen(login)))).toEqual([false, false, true])
  })
})
