import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { UserId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { hashProofToken } from '../user/proof/proof-token.ts'
import { deleteExpiredAddressProofs } from './address-proof.store.ts'
import {
  endMailLogins,
  findMailLoginOf,
  findProof,
  findProofGoal,
  isAskingBrowser,
  keepMailLogin,
  keepSignUp,
  lockMailLogin,
  type ProofBrowser,
  takeSignUp,
} from './address-proof.ts'

const now = new Date('2026-09-11T08:00:00.000Z')
const expiresAt = new Date('2026-09-11T09:00:00.000Z')

const app = await openForFile(createTestApp())

const db = () => app.database.db
let count = 0
/** Keeps a sign-up, by default from a network of its own. */
async function signUp(email: string, address = `10.9.${count}.1`): Promise<string> {
  count += 1
  const token = `sign-up ${count}`
  await keepSignUp(db(), { tokenHash: hashProofToken(token), email, origin: { address }, expiresAt, now })
  return token
}
/** Keeps a sign-in by mail, whose link and client have the same token. */
async function mailLogin(email: string): Promise<string> {
  count += 1
  const token = `mail login ${count}`
  const [tokenHash, loginHash, codeHash] = [hashProofToken(token), hashProofToken(token), hashProofToken('code')]
  const origin = { address: `10.9.${count}.1` }
  await keepMailLogin(db(), { tokenHash, loginHash, codeHash, email, origin, expiresAt, now })
  return token
}
const createUser = async (email: string): Promise<UserId> =>
  (await app.admin('POST', '/api/v3/identity/user', { email })).body.data.document_id
const isOpen = async (purpose: 'sign-up' | 'sign-in', token: string, at = now) =>
  (await findProof(db(), { token, purpose, now: at })) !== undefined

test('the use of a sign-up takes those of its address in any spelling, and nothing else', async () => {
  const [first, second] = [await signUp('taken@example.com'), await signUp('TAKEN@example.com')]
  const [other, login] = [await signUp('other@example.com'), await mailLogin('taken@example.com')]
  expect(await takeSignUp(db(), { token: login, now })).toBeUndefined()
  expect(await takeSignUp(db(), { token: 'unknown', now })).toBeUndefined()
  expect(await takeSignUp(db(), { token: first, now: expiresAt })).toBeUndefined()
  expect(await isOpen('sign-up', second)).toBe(true)
  expect(await takeSignUp(db(), { token: first, now })).toMatchObject({ email: 'taken@example.com' })
  const open = [await isOpen('sign-up', second), await isOpen('sign-up', other), await isOpen('sign-in', login)]
  expect(open).toEqual([false, true, true])
  expect(await takeSignUp(db(), { token: first, now })).toBeUndefined()
})

test('a proof is found until it expires, for its own purpose', async () => {
  const [token, login] = [await signUp('found@example.com'), await mailLogin('found@example.com')]
  const last = new Date(expiresAt.getTime() - 1)
  expect([await isOpen('sign-up', token, last), await isOpen('sign-up', token, expiresAt)]).toEqual([true, false])
  expect([await isOpen('sign-in', token), await isOpen('sign-up', login)]).toEqual([false, false])
  expect(await findMailLoginOf(db(), { login, now: last })).toMatchObject({ email: 'found@example.com' })
  expect(await findMailLoginOf(db(), { login, now: expiresAt })).toBeUndefined()
  expect(await findMailLoginOf(db(), { login: token, now })).toBeUndefined()
})

test('a sign-in by mail is of the active user who has the address, and ends with the others of this user', async () => {
  const [own, other, disabled] = ['own@example.com', 'else@example.com', 'disabled@example.com']
  const [userId, , disabledId] = [await createUser(own), await createUser(other), await createUser(disabled)]
  await app.admin('POST', `/api/v3/identity/user/${disabledId}/disable`)
  const tokens = [await mailLogin(own), await mailLogin('OWN@example.com'), await mailLogin(other)]
  const of = async (email: string) => (await findMailLoginOf(db(), { login: await mailLogin(email), now }))?.userId
  expect([await of(disabled), await of('nobody@example.com')]).toEqual([null, null])
  await inTransaction(db(), (tx) => endMailLogins(tx, { userId }))
  const open = []
  for (const token of tokens) open.push(await isOpen('sign-in', token))
  expect(open).toEqual([false, false, true])
})

test('a wide network has its limit, over the networks in it', async () => {
  for (let at = 0; at < 100; at += 1) await signUp(`wide-${at}@example.com`, `172.16.1.${at}`)
  const refused = signUp('wide@example.com', '172.16.1.200')
  await expect(refused).rejects.toMatchObject({ code: 'rate_limited' })
  expect(await isOpen('sign-up', await signUp('wide@example.com', '172.16.2.200'))).toBe(true)
})

test('expired proofs are deleted, and no others', async () => {
  const token = await signUp('swept@example.com')
  await deleteExpiredAddressProofs(db(), expiresAt, 10_000)
  expect(await isOpen('sign-up', token)).toBe(true)
  const later = new Date(expiresAt.getTime() + 1)
  expect(await deleteExpiredAddressProofs(db(), later, 2)).toBe(2)
  await deleteExpiredAddressProofs(db(), later, 10_000)
  expect(await isOpen('sign-up', token)).toBe(false)
})

/** Keeps a sign-up of a browser, and reads it again. */
async function signUpIn(browser: Partial<ProofBrowser> | undefined) {
  count += 1
  const token = `sign-up ${count}`
  const origin = {
    address: `10.9.${count}.1`,
    ...(browser && { browser: { id: 'browser', isKnown: false, redirectUrl: undefined, next: undefined, ...browser } }),
  }
  const asked = { tokenHash: hashProofToken(token), email: `browser-${count}@example.com`, origin, expiresAt, now }
  await keepSignUp(db(), asked)
  return (await findProof(db(), { token, purpose: 'sign-up', now }))!
}

test('a proof is of the browser that asked, and one by the API of no browser', async () => {
  const [inBrowser, byApi] = [await signUpIn({ id: 'mine' }), await signUpIn(undefined)]
  expect(inBrowser.browser?.toString('hex')).not.toBe(Buffer.from('mine').toString('hex'))
  expect([isAskingBrowser(inBrowser, 'mine'), isAskingBrowser(inBrowser, 'other')]).toEqual([true, false])
  expect(isAskingBrowser(inBrowser, undefined)).toBe(false)
  expect([isAskingBrowser(byApi, undefined), isAskingBrowser(byApi, 'mine')]).toEqual([true, false])
})

test('a goal is of the browser that asked, of 2,048 characters together at most', async () => {
  const kept = await signUpIn({ id: 'mine', redirectUrl: 'r'.repeat(2_000), next: 'n'.repeat(48) })
  expect(findProofGoal(kept, 'mine')).toEqual({ redirectUrl: 'r'.repeat(2_000), next: 'n'.repeat(48) })
  expect([findProofGoal(kept, 'other'), findProofGoal(kept, undefined)]).toEqual([{}, {}])
  const longer = await signUpIn({ id: 'mine', redirectUrl: 'r'.repeat(2_000), next: 'n'.repeat(49) })
  expect(findProofGoal(longer, 'mine')).toEqual({ redirectUrl: null, next: null })
  expect(await signUpIn({ next: 'n'.repeat(2_049) })).toMatchObject({ redirectUrl: null, next: null })
  expect(await signUpIn({ redirectUrl: 'r'.repeat(2_049) })).toMatchObject({ redirectUrl: null, next: null })
  expect(await signUpIn({ redirectUrl: '/r' })).toMatchObject({ redirectUrl: '/r', next: null })
  expect(await signUpIn({ next: '/n' })).toMatchObject({ redirectUrl: null, next: '/n' })
  expect(findProofGoal(await signUpIn(undefined), undefined)).toEqual({})
})

test('a known browser has a limit of its own, which those of the network and of others do not touch', async () => {
  const ask = async (id: string, isKnown: boolean, address = '10.200.0.1') => {
    count += 1
    const tokenHash = hashProofToken(`sign-up ${count}`)
    const browser = { id, isKnown, redirectUrl: undefined, next: undefined }
    const asked = { tokenHash, email: 'known-browser@example.com', origin: { address, browser }, expiresAt, now }
    return (await keepSignUp(db(), asked)).isKept
  }
  const strangers = [await ask('a', false), await ask('b', false), await ask('c', false), await ask('d', false)]
  expect(strangers).toEqual([true, true, true, false])
  const own = [await ask('mine', true), await ask('mine', true), await ask('mine', true), await ask('mine', true)]
  expect(own).toEqual([true, true, true, false])
})

test('a sign-in by mail is locked by its link without an attempt, and by the id of its client with one', async () => {
  const token = await mailLogin('attempts@example.com')
  const lock = (by: Parameters<typeof lockMailLogin>[1]) => inTransaction(db(), (tx) => lockMailLogin(tx, by, now))
  expect(await lock({ kind: 'link', token })).toMatchObject({ attempts: 0 })
  expect(await lock({ kind: 'code', login: token })).toMatchObject({ attempts: 1 })
  expect(await lock({ kind: 'code', login: token })).toMatchObject({ attempts: 2 })
  expect(await lock({ kind: 'link', token })).toMatchObject({ attempts: 2 })
  expect(await lock({ kind: 'link', token: 'unknown' })).toBeUndefined()
})

test('a password beside an unverified address gets no sign-in by mail, one without a password or verified does', async () => {
  const userOf = async (email: string) => (await findMailLoginOf(db(), { login: await mailLogin(email), now }))?.userId
  const set = (id: UserId, columns: string) =>
    app.database.pool.query(`update "user" set ${columns} where document_id = $1`, [id])
  const [bare, unproven] = [await createUser('bare@example.com'), await createUser('unproven@example.com')]
  await set(bare, 'email_verified_at = null, password_hash = null')
  await set(unproven, "email_verified_at = null, password_hash = 'x'")
  expect(await userOf('bare@example.com')).toBe(bare)
  expect(await userOf('unproven@example.com')).toBeNull()
  await set(unproven, 'email_verified_at = now()')
  expect(await userOf('unproven@example.com')).toBe(unproven)
})
