import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { narrowTokenFamilies, writeTokenFamily } from './interaction.store.ts'

const EXPIRES_AT = new Date('2026-09-11T12:00:00.000Z')

async function openFamilies() {
  const database = await createTestDatabase()
  const write = (act: (tx: Database) => Promise<void>) => inTransaction(database.db, act)
  /** Writes a family of tokens; returns its id. */
  const add = async (grantId: string) => {
    const tokenFamilyId = randomUUID()
    const payload = { scope: 'wide', kind: 'Grant' }
    await write((tx) => writeTokenFamily(tx, { tokenFamilyId, grantId, payload, expiresAt: EXPIRES_AT }))
    return tokenFamilyId
  }
  const scopes = async () => {
    const { rows } = await database.pool.query(
      `select grant_id, payload->>'scope' as scope from oauth_state where payload->>'kind' = 'Grant'`,
    )
    return Object.fromEntries(rows.map((row) => [row.grant_id, row.scope]))
  }
  const narrow = (grantId: string, except: string | null) =>
    write((tx) => narrowTokenFamilies(tx, { grantId, except, members: { scope: 'narrow' } }))
  return { add, scopes, narrow, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

test('the families of a grant are narrowed, except one; those of another grant are not', async () => {
  await using t = await openFamilies()
  const [grant, foreign] = [randomUUID(), randomUUID()]
  const [one, two, other] = [await t.add(grant), await t.add(grant), await t.add(foreign)]
  await t.narrow(grant, two)
  expect(await t.scopes()).toEqual({ [one]: 'narrow', [two]: 'wide', [other]: 'wide' })
  await t.narrow(grant, null)
  expect(await t.scopes()).toEqual({ [one]: 'narrow', [two]: 'narrow', [other]: 'wide' })
})
