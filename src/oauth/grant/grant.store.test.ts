import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter } from '../../../test/harness/database/identity-rows.ts'
import type { UserId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { type ClientId, insertClient } from '../client/client.store.ts'
import { DEFAULT_SETTINGS } from '../client/client.ts'
import { findGrantOf, type GrantId, upsertGrant } from './grant.store.ts'

test('a user has one grant of a client until it is revoked, and another one after', async () => {
  await using database = await createTestDatabase()
  const { db, pool } = database
  const rows = buildIdentityRows(db)
  const [user, other] = [await rows.user(), await rows.user()]
  const addClient = async () => {
    const id = randomUUID() as string as ClientId
    const facts = { name: 'App', type: 'public', redirectUris: ['https://app.example.com/callback'] } as const
    const rest = { id, logoHash: null, registration: 'administrator', createdAt: MADE_AT, updatedAt: MADE_AT } as const
    await inTransaction(db, (tx) =>
      insertClient(tx, { ...DEFAULT_SETTINGS, ...facts, ...rest, redirectUris: [...facts.redirectUris] }, undefined),
    )
    return id
  }
  const [client, beside] = [await addClient(), await addClient()]
  const allow = async (userId: UserId, clientId: ClientId, scopes: string[], ms = 0) =>
    (
      await upsertGrant(db, {
        ...{
          id: randomUUID() as string as GrantId,
          userId,
          clientId,
          scopes,
          refusedScopes: [],
          redirectUris: [`https://app.example.com/${ms}`],
        },
        now: madeAfter(ms),
      })
    ).id
  const first = await allow(user, client, ['openid'])
  for (const [userId, clientId] of [
    [other, client],
    [user, beside],
  ] as [UserId, ClientId][])
    await allow(userId, clientId, ['email'])
  expect(await allow(user, client, ['openid', 'email'], 1)).toBe(first)
  expect(await findGrantOf(db, user, client)).toMatchObject({
    ...{
      id: first,
      scopes: ['openid', 'email'],
      redirectUris: ['https://app.example.com/1'],
      createdAt: MADE_AT,
      updatedAt: madeAfter(1),
    },
  })
  await pool.query('update oauth_grant set revoked_at = now() where document_id = $1', [first])
  expect(await findGrantOf(db, user, client)).toBeUndefined()
  expect(await findGrantOf(db, other, client)).toMatchObject({ scopes: ['email'] })
  expect(await allow(user, client, ['openid'], 2)).not.toBe(first)
})
