import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import type { UserId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { hashProofToken } from '../user/proof/proof-token.ts'
import { deleteExpiredAddressProofs } from './address-proof.store.ts'
import { endMailLogins, findMailLoginOf, findProof, keepMailLogin, keepSignUp, takeSignUp } from './address-proof.ts'

const now = new Date('2026-09-11T08:00:00.000Z')
const expiresAt = new Date('2026-09-11T09:00:00.000Z')
let app: TestApp

beforeAll(async () => {
  app = await createTestApp()
})
afterAll(() => app[Symbol.asyncDispose]())

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
  await inTransaction(db(), (tx) => endMailLogins(tx, userId))
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
  await deleteExpiredAddressProofs(db(), new Date(expiresAt.getTime() - 1), 10_000)
  expect(await isOpen('sign-up', token)).toBe(true)
  expect(await deleteExpiredAddressProofs(db(), expiresAt, 2)).toBe(2)
  await deleteExpiredAddressProofs(db(), expiresAt, 10_000)
  expect(await isOpen('sign-up', token)).toBe(false)
})
