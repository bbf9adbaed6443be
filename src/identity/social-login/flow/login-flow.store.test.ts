import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { whileHeld } from '../../../../test/harness/plan/lock-waits.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { consumeFlow, insertFlow, keepPostedAnswer, keepPostedName } from './login-flow.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const EXPIRES_AT = new Date(NOW.getTime() + 600_000)

let states = 0
/** A flow of a browser that begins: the hash of its state. */
async function begin(db: Database): Promise<Buffer> {
  states += 1
  const stateHash = Buffer.alloc(32, states)
  const rest = {
    linkTo: null,
    proves: null,
    connection: null,
    redirectUrl: 'https://app.test/',
    isDeepLink: false,
    codeChallenge: null,
  }
  const flow = { ...rest, stateHash, provider: 'google', isBound: true, secret: 'sealed', expiresAt: EXPIRES_AT }
  await insertFlow(db, { ...flow, now: NOW })
  return stateHash
}

const consume = async (db: Database, stateHash: Buffer, change: object = {}) =>
  (await consumeFlow(db, { stateHash, provider: 'google', now: NOW, ...change })) !== undefined

test('a flow is consumed once, before it expires, at its provider', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const stateHash = await begin(db)
  for (const change of [{ provider: 'github' }, { now: EXPIRES_AT }, { stateHash: Buffer.alloc(32, 'x') }])
    expect(await consume(db, stateHash, change), JSON.stringify(change)).toBe(false)
  expect(await consume(db, stateHash, { now: new Date(EXPIRES_AT.getTime() - 1) })).toBe(true)
  expect(await consume(db, stateHash)).toBe(false)
})

test('of two callbacks at once, the one that waits for the other gets no flow', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const stateHash = await begin(db)
  const first = async (tx: Database) => expect(await consume(tx, stateHash)).toBe(true)
  expect(await whileHeld(db, first, () => consume(db, stateHash))).toBe(false)
})

test('the first name that a provider posts is kept, in its flow alone, and none in a finished one', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const [one, two, done] = [await begin(db), await begin(db), await begin(db)]
  await consume(db, done)
  const post = (stateHash: Buffer, name: string, provider = 'google') =>
    keepPostedName(db, { stateHash, provider, name })
  await post(one, 'Of another provider', 'github')
  for (const name of ['Ada', 'Somebody else']) await post(one, name)
  await post(done, 'Late')
  const found = await db.selectFrom('login_flow').select(['state_hash', 'posted_name']).execute()
  const nameOf = (hash: Buffer) => found.find((row) => row.state_hash.equals(hash))?.posted_name
  expect([nameOf(one), nameOf(two), nameOf(done)]).toEqual(['Ada', null, null])
})

test('the first answer that a provider posts is kept, while its flow is open', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const [one, two, done] = [await begin(db), await begin(db), await begin(db)]
  await consume(db, done)
  const post = async (stateHash: Buffer, answer: string, change: object = {}) =>
    (await keepPostedAnswer(db, { stateHash, provider: 'google', answer, now: NOW, ...change })) !== undefined
  expect(await post(one, 'of another provider', { provider: 'github' })).toBe(false)
  expect(await post(one, 'late', { now: EXPIRES_AT })).toBe(false)
  expect(await post(one, 'first', { now: new Date(EXPIRES_AT.getTime() - 1) })).toBe(true)
  expect([await post(one, 'second'), await post(done, 'late')]).toEqual([false, false])
  const found = await db.selectFrom('login_flow').select(['state_hash', 'posted_answer']).execute()
  const answerOf = (hash: Buffer) => found.find((row) => row.state_hash.equals(hash))?.posted_answer
  expect([answerOf(one), answerOf(two), answerOf(done)]).toEqual(['first', null, null])
})
