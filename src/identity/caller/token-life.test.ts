import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../test/harness/app/known-password.ts'
import { readTokenLives, type TokenName } from './token-life.ts'

const HOUR_MS = 3_600_000
const PASSWORD = 'correct horse battery'

let app: TestApp
beforeAll(async () => {
  app = await createTestApp()
})
afterAll(() => app[Symbol.asyncDispose]())

let users = 0
async function signIn() {
  users += 1
  const email = `live-${users}@example.com`
  await createUserWithPassword(app, { email }, PASSWORD)
  const { jwt, refresh_token } = (
    await app.anonymous('POST', '/api/v3/auth/login/local', { email, password: PASSWORD })
  ).body.data
  const { session } = (await app.callAs(jwt)('GET', '/api/v3/auth/session')).body.data
  return { jwt, refreshToken: refresh_token as string, name: `s:${session.document_id}` as const }
}

async function endsAt(name: TokenName) {
  const lives = await readTokenLives(app.database.db, [name], new Date(app.clock.now()))
  expect([...lives.keys()].filter((other) => other !== name)).toEqual([])
  return lives.get(name)
}

test('a session serves until its latest JWT expires, to the millisecond, and on when it is refreshed', async () => {
  const { name, refreshToken } = await signIn()
  const openedAtMs = app.clock.now()
  expect(await endsAt(name)).toEqual(new Date(openedAtMs + HOUR_MS))
  app.clock.set(openedAtMs + HOUR_MS - 1)
  expect(await endsAt(name)).toEqual(new Date(openedAtMs + HOUR_MS))
  app.clock.set(openedAtMs + HOUR_MS)
  expect(await endsAt(name)).toBeUndefined()
  await app.anonymous('POST', '/api/v3/auth/session/refresh', { refresh_token: refreshToken })
  expect(await endsAt(name)).toEqual(new Date(openedAtMs + 2 * HOUR_MS))
})

test('a session that was signed out, and a key that was revoked or has expired, serve no more', async () => {
  const { name, jwt } = await signIn()
  const call = app.callAs(jwt)
  const make = async (more: object) =>
    (await call('POST', '/api/v3/identity/api-key', { name: 'x', permissions: ['realtime:auth'], ...more })).body.data
  const [lasting, short] = [await make({}), await make({ expires_at: new Date(app.clock.now() + 1_000).toISOString() })]
  expect(await endsAt(`k:${lasting.document_id}`)).toBeNull()
  expect(await endsAt(`k:${short.document_id}`)).toEqual(new Date(app.clock.now() + 1_000))
  app.clock.advance(1_000)
  expect(await endsAt(`k:${short.document_id}`)).toBeUndefined()
  await call('DELETE', `/api/v3/identity/api-key/${lasting.document_id}`)
  expect(await endsAt(`k:${lasting.document_id}`)).toBeUndefined()
  await call('POST', '/api/v3/auth/session/revoke', {})
  expect(await endsAt(name)).toBeUndefined()
})
