import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { whileHeld } from '../../../../test/harness/plan/lock-waits.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { consumeFlow, insertFlow } from './login-flow.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const EXPIRES_AT = new Date(NOW.getTime() + 600_000)
const BROWSER = Buffer.alloc(32, 'b')

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
  const flow = { ...rest, stateHash, provider: 'google', bindingHash: BROWSER, secret: 'sealed', expiresAt: EXPIRES_AT }
  await insertFlow(db, flow, NOW)
  return stateHash
}

const consume = async (db: Database, stateHash: Buffer, change: object = {}) =>
  (await consumeFlow(db, { stateHash, provider: 'google', bindingHash: BROWSER, now: NOW, ...change })) !== undefined

test('a flow is consumed once, before it expires, at its provider and in its browser', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const stateHash = await begin(db)
  for (const change of [
    { provider: 'github' },
    { bindingHash: Buffer.alloc(32, 'c') },
    { bindingHash: null },
    { now: EXPIRES_AT },
    { stateHash: Buffer.alloc(32, 'x') },
  ])
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
