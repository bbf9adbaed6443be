import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import type { UserId } from '../../../base/id.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import type { ProviderIdentity } from '../../engine/engine.ts'
import { type IdentityId, lockIdentity, saveIdentity } from './identity.store.ts'

const FIRST = new Date('2026-09-11T12:00:00.000Z')
const NEXT = new Date('2026-09-12T12:00:00.000Z')

test('an identity is kept as its provider said last, with the name and the picture that it says no more', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const userId = randomUUID() as string as UserId
  const at = { created_at: FIRST, updated_at: FIRST }
  await db
    .insertInto('user')
    .values({ document_id: userId, email: 'a@b.test', ...at })
    .execute()
  const said = (change: Partial<ProviderIdentity>): ProviderIdentity => ({
    ...{ provider: 'google', subject: '4711', email: 'old@b.test', isEmailVerified: true },
    ...{ name: 'Ada', avatarUrl: 'https://img.test/a.png', ...change },
  })
  const save = (identity: ProviderIdentity, now: Date) =>
    inTransaction(db, async (tx) => {
      const known = (await lockIdentity(tx, identity))?.identity
      const id = randomUUID() as string as IdentityId
      return saveIdentity(tx, known, { ...identity, id, userId, lastLoginAt: now, now })
    })
  const read = () => inTransaction(db, async (tx) => (await lockIdentity(tx, said({})))?.identity)

  const first = await save(said({}), FIRST)
  expect(first).toMatchObject({ ...said({}), userId, lastLoginAt: FIRST })
  expect(await read()).toEqual(first)
  const later = said({ email: 'new@b.test', isEmailVerified: false, name: null, avatarUrl: null })
  expect(await save(later, NEXT)).toEqual(await read())
  const change = { email: 'new@b.test', isEmailVerified: false, lastLoginAt: NEXT, updatedAt: NEXT }
  expect(await read()).toEqual({ ...first, ...change })
})
