import { expect, test } from 'vitest'
import { buildIdentityApp } from '../../../test/harness/app/identity-app.ts'

const PRECISION_MS = 5 * 60_000

test('the use of a session is noted once in five minutes', async () => {
  await using app = await buildIdentityApp()
  const { token, session } = await app.user('someone')
  const openedAtMs = app.clock.now()
  const usedAfter = async (ms: number) => {
    app.clock.set(openedAtMs + ms)
    expect((await app.call('GET', '/api/v3/auth/session', { token })).status).toBe(200)
    const rows = app.db.selectFrom('session').select('last_used_at').where('document_id', '=', session.sessionId)
    return (await rows.executeTakeFirstOrThrow()).last_used_at.getTime() - openedAtMs
  }
  expect(await usedAfter(PRECISION_MS - 1)).toBe(0)
  expect(await usedAfter(PRECISION_MS)).toBe(PRECISION_MS)
  expect(await usedAfter(2 * PRECISION_MS - 1)).toBe(PRECISION_MS)
})
