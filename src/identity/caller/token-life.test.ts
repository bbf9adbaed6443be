import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../test/harness/app/known-password.ts'
import { createNarrowedApp } from '../../../test/harness/app/narrowed-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { listTokenNames, nameToken, readTokenLives, type TokenName } from './token-life.ts'

const HOUR_MS = 3_600_000
const PASSWORD = 'correct horse battery'

const app = await openForFile(createTestApp())

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

test('a token is named by its state, and a report of it means all of them', () => {
  const narrowing = { account: 'a', connection: 'c', lacking: [], enterPath: null } as never as object
  const name = (more: object) => nameToken({ sessionId: 'x', apiKeyId: null, ...more } as never)
  const names = [name({}), name({ narrowing: { ...narrowing, provenUntil: null } })]
  names.push(name({ narrowing: { ...narrowing, provenUntil: new Date() } }))
  expect(names).toEqual(['s:x', 's:x:lacking', 's:x:proven'])
  for (const one of names) expect(listTokenNames(one as TokenName)).toEqual(names)
  expect(nameToken({ sessionId: null, apiKeyId: null })).toBeUndefined()
})

test('a token of a member of several accounts serves in its state alone', async () => {
  await using t = await createNarrowedApp()
  const world = await t.prepare()
  const browser = await t.enterPassword(world)
  const call = t.app.callAs(browser.jwt)
  const session = (await call('GET', '/api/v3/auth/session')).body.data.session.document_id
  const key = async (more: object) =>
    (await call('POST', '/api/v3/identity/api-key', { name: 'x', permissions: ['account-member:*'], ...more })).body
      .data.document_id
  const [whole, bound] = [await key({}), await key({ account: world.closed })]
  const living = async () => {
    const names = [`s:${session}`, `k:${whole}`, `k:${bound}`].flatMap((name) => listTokenNames(name as TokenName))
    const found = await readTokenLives(t.app.database.db, names, new Date(t.app.clock.now()))
    const isOf = (id: string) => (name: string) => name.includes(id)
    const states = (id: string) => [...found.keys()].filter(isOf(id)).map((name) => name.split(':')[2] ?? 'whole')
    return [session, whole, bound].map((id) => states(id).sort().join(' '))
  }
  expect(await living()).toEqual(['lacking proven whole', 'lacking proven whole', 'lacking proven whole'])
  await t.enforce(world)
  expect(await living()).toEqual(['lacking', 'lacking', 'lacking proven whole'])
  await t.change(world, { session_hours: 1 })
  await t.proveSession(world, browser)
  expect(await living()).toEqual(['lacking proven', 'lacking', 'lacking proven whole'])
  t.app.clock.advance(3_599_000)
  await browser.visitor.get('/auth/')
  const proven = `s:${session}:proven` as TokenName
  const lives = await readTokenLives(t.app.database.db, [proven], new Date(t.app.clock.now()))
  expect(lives.get(proven)?.getTime()).toBe(t.app.clock.now() + 1_000)
})
