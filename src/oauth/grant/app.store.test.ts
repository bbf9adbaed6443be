import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import type { UserId } from '../../base/id.ts'
import { listApps, listEngineApps } from './app.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const at = (ms: number) => new Date(NOW.getTime() + ms)

test('the apps of a user are those with a grant that is not revoked, the most recently used first', async () => {
  await using database = await createTestDatabase()
  const { db, pool } = database
  const users = [randomUUID(), randomUUID()] as string[] as [UserId, UserId]
  for (const id of users)
    await db
      .insertInto('user')
      .values({ document_id: id, email: `${id}@b.test`, created_at: NOW, updated_at: NOW })
      .execute()
  const grant = async (name: string, since: Date, more: { user?: UserId; usedAt?: Date; revokedAt?: Date } = {}) => {
    const { user = users[0], usedAt, revokedAt = null } = more
    const [client, own, there] = [randomUUID(), randomUUID(), randomUUID()]
    await pool.query(
      `insert into oauth_client (document_id, name, type, application_type, redirect_uris, post_logout_redirect_uris,
         grant_types, scopes, first_party, id_token_signed_response_alg, dpop_bound_access_tokens, registration,
         created_at, updated_at)
       values ($1, $2, 'public', 'web', '{}', '{}', '{}', '{}', false, 'ES256', false, 'administrator', $3, $3)`,
      [client, name, NOW],
    )
    await pool.query(
      `insert into oauth_grant (document_id, "user", client, scopes, refused_scopes, created_at, updated_at, revoked_at)
       values ($1, $2, $3, '{openid}', '{}', $4, $4, $5)`,
      [own, user, client, since, revokedAt],
    )
    await pool.query(
      `insert into engine_grant (document_id, "user", client, client_name, scopes, created_at, updated_at, revoked_at)
       values ($1, $2, $3, $4, '{openid}', $5, $5, $6)`,
      [there, user, client, name, since, revokedAt],
    )
    if (!usedAt) return
    await pool.query('insert into oauth_grant_use (grant_id, client, used_at) values ($1, $2, $3)', [
      own,
      client,
      at(-9_000),
    ])
    for (const [grantId, revoked] of [
      [own, null],
      [there, null],
      [own, NOW],
      [there, NOW],
    ] as const)
      await pool.query(
        `insert into session (document_id, "user", expires_at, auth_time, last_used_at, created_at, updated_at, amr,
           client_id, scope, grant_id, revoked_at) values ($1, $2, $3, $3, $4, $3, $3, '{}', $5, '', $6, $7)`,
        [randomUUID(), user, NOW, revoked ? at(9_000) : usedAt, client, grantId, revoked],
      )
  }
  await grant('old', at(-2_000), { usedAt: at(-1_000) })
  await grant('unused', at(-100))
  await grant('newest', at(-50))
  await grant('recent', at(-3_000), { usedAt: at(-10) })
  await grant('revoked', at(-1), { usedAt: at(-1), revokedAt: NOW })
  await grant('of another', at(-1), { user: users[1], usedAt: at(-1) })
  for (const list of [listApps, listEngineApps]) {
    const found = await list(db, { userId: users[0] })
    expect(found.map(({ name }) => name)).toEqual(['recent', 'old', 'newest', 'unused'])
    expect(found.map(({ lastUsedAt }) => lastUsedAt)).toEqual([at(-10), at(-1_000), null, null])
    expect(found[0]).toMatchObject({ scopes: ['openid'], since: at(-3_000) })
  }
})
