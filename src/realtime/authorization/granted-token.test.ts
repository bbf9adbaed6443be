import { beforeEach, expect, test } from 'vitest'
import type { TestCall } from '../../../test/harness/app/app.ts'
import { openRealtime } from '../../../test/harness/app/realtime-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { COLLECT_MS, RETRY_MS } from './subscription-guard.ts'

const fixture = await openForFile(openRealtime())
const own = await fixture.addAccount()
beforeEach(() => {
  fixture.provider.terminated.length = 0
})

const letGuardWork = async () => {
  fixture.t.clock.advance(COLLECT_MS)
  await fixture.t.app.realtime.guard?.settled()
}

const authorize = async (call: TestCall) => {
  const body = { socket_id: '1.1', channel_name: `private-account-${own}` }
  expect((await call('POST', '/api/v3/realtime/realtime/auth', body)).status).toBe(200)
}

const signOut = (call: TestCall) => call('POST', '/api/v3/auth/session/revoke', {})

const countTokens = async (userId: string): Promise<number> => {
  const text = 'select count(*)::int as count from realtime_grant_token where user_id = $1'
  return (await fixture.t.database.pool.query(text, [userId])).rows[0].count
}

test('who signs out loses the connections at the provider, once', async () => {
  const user = await fixture.t.signInMember([own])
  await authorize(user.call)
  expect(await countTokens(user.userId)).toBe(1)
  expect((await signOut(user.call)).status).toBe(200)
  await letGuardWork()
  expect(fixture.provider.terminated).toEqual([user.userId])
  expect(await countTokens(user.userId)).toBe(0)
})

test('who only says who it is at a connection loses it with the session, too', async () => {
  const user = await fixture.t.signInMember([own])
  await user.call('POST', '/api/v3/realtime/realtime/user-auth', { socket_id: '1.1' })
  await signOut(user.call)
  await letGuardWork()
  expect(fixture.provider.terminated).toEqual([user.userId])
})

test('the end of a session with which nothing was authorized ends no connection', async () => {
  const user = await fixture.t.signInMember([own])
  await signOut(user.call)
  await letGuardWork()
  expect(fixture.provider.terminated).toEqual([])
})

test('a session that another process granted for, which is gone, ends the connections too', async () => {
  const user = await fixture.t.signInMember([own])
  const { session } = (await user.call('GET', '/api/v3/auth/session')).body.data
  const row = [`s:${session.document_id}`, user.userId, null, new Date(fixture.t.clock.now())]
  await fixture.t.database.pool.query('insert into realtime_grant_token values ($1, $2, $3, $4)', row)
  await signOut(user.call)
  await letGuardWork()
  expect(fixture.provider.terminated).toEqual([user.userId])
})

test('while the provider does not answer, the connections end when it answers again', async () => {
  const user = await fixture.t.signInMember([own])
  await authorize(user.call)
  fixture.provider.behave({ kind: 'answers', status: 503 })
  await signOut(user.call)
  await letGuardWork()
  fixture.provider.behave({ kind: 'works' })
  expect(fixture.provider.terminated).toEqual([])
  fixture.t.clock.advance(RETRY_MS)
  await new Promise(setImmediate)
  await letGuardWork()
  expect(fixture.provider.terminated).toEqual([user.userId])
})
