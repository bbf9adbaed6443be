import { randomUUID } from 'node:crypto'
import type { KoaContextWithOIDC } from 'oidc-provider'
import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter } from '../../../../test/harness/database/identity-rows.ts'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { UserId } from '../../../base/id.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import { type ClientId, insertClient } from '../../client/client.store.ts'
import { DEFAULT_SETTINGS } from '../../client/client.ts'
import { type GrantId, upsertGrant } from '../../grant/grant.store.ts'
import { hashStateId } from '../../grant/state-id.ts'
import { findRequestState } from './request-state.ts'
import { upsertState } from './state.store.ts'
import { readGrant, readRow, readRowByUid, readUser, readUserClaims } from './state-reader.ts'

/** What a request has read stays for it: each test takes the rows away, and reads again. */

const clock = buildManualClock()
let userId: UserId
const database = await openForFile(createTestDatabase())
const rows = buildIdentityRows(database.db)
clock.set(MADE_AT.getTime())
beforeEach(async () => {
  await run('delete from oauth_state')
  userId = await rows.user()
})

const run = (text: string, ...values: unknown[]) => database.pool.query(text, values)
const deps = () => ({ db: database.db, machineClock: clock })

/** Keeps a row for a minute. */
const keep = (
  model: string,
  id: string,
  more: { uid?: string; grantId?: string; payload?: object; ms?: number } = {},
) =>
  upsertState(database.db, {
    ...{ model, idHash: hashStateId(id), payload: { name: `${model} ${id}`, ...more.payload } },
    ...{ grantId: more.grantId ?? null, uid: more.uid ?? null, consent: null, userCodeHash: null },
    expiresAt: madeAfter(more.ms ?? 60_000),
  })
const open = (route = 'authorization') => ({ oidc: { route } }) as unknown as KoaContextWithOIDC
const read = async (model: string, id: string, ctx?: KoaContextWithOIDC) =>
  (await readRow(deps(), { model, idHash: hashStateId(id) }, ctx))?.payload.name
const readUid = async (model: string, uid: string, ctx?: KoaContextWithOIDC) =>
  (await readRowByUid(deps(), { model, uid }, ctx))?.payload.name
const nameOf = (ctx: KoaContextWithOIDC, id: string = userId) => readUserClaims(deps(), id, ctx)

async function addClient(): Promise<ClientId> {
  const id = randomUUID() as string as ClientId
  const rest = { id, logoHash: null, registration: 'administrator', createdAt: MADE_AT, updatedAt: MADE_AT } as const
  const facts = { name: 'App', type: 'public', redirectUris: ['https://app.example.com/callback'] } as const
  await inTransaction(database.db, (tx) =>
    insertClient(tx, { ...DEFAULT_SETTINGS, ...facts, ...rest, redirectUris: [...facts.redirectUris] }, undefined),
  )
  return id
}

test('a row is read once for a request, also a missing one, and each time outside of one', async () => {
  const ctx = open()
  await keep('Interaction', 'one')
  expect([await read('Interaction', 'one', ctx), await read('Interaction', 'two', ctx)]).toEqual([
    'Interaction one',
    undefined,
  ])
  await keep('Interaction', 'two')
  await run('delete from oauth_state where id_hash = $1', hashStateId('one'))
  expect([await read('Interaction', 'one', ctx), await read('Interaction', 'two', ctx)]).toEqual([
    'Interaction one',
    undefined,
  ])
  expect([await read('Interaction', 'one'), await read('Interaction', 'two')]).toEqual([undefined, 'Interaction two'])
  expect(await read('Interaction', 'one', open())).toBeUndefined()
})

test('a row is none from the instant at which it expires', async () => {
  for (const model of ['Interaction', 'AccessToken']) {
    await keep(model, 'now', { ms: 0 })
    await keep(model, 'later', { ms: 1 })
    for (const ctx of [undefined, open()])
      expect([await read(model, 'now', ctx), await read(model, 'later', ctx)]).toEqual([undefined, `${model} later`])
  }
})

test('a token comes with its family, its session and its user', async () => {
  const payload = { grantId: 'family', sessionUid: 'uid', accountId: userId }
  await keep('AuthorizationCode', 'code', { grantId: 'family', payload })
  await keep('Grant', 'family')
  await keep('Session', 'cookie', { uid: 'uid' })
  const ctx = open('token')
  expect(await read('AuthorizationCode', 'code', ctx)).toBe('AuthorizationCode code')
  await run('delete from oauth_state')
  await rows.set('user', userId, { is_actived: false })
  expect(await read('AuthorizationCode', 'code', ctx)).toBe('AuthorizationCode code')
  expect(await read('Grant', 'family', ctx)).toBe('Grant family')
  expect(await readUid('Session', 'uid', ctx)).toBe('Session cookie')
  expect(await nameOf(ctx)).toMatchObject({ id: userId })
  const other = open('token')
  expect(await read('Grant', 'family', other)).toBeUndefined()
  expect(await readUid('Session', 'uid', other)).toBeUndefined()
  expect(await nameOf(other)).toBeUndefined()
})

test('what a token names and nobody has is not looked for again', async () => {
  const payload = { grantId: 'family', sessionUid: 'uid', accountId: userId }
  await keep('RefreshToken', 'token', { grantId: 'family', payload })
  await rows.set('user', userId, { is_actived: false })
  const ctx = open('token')
  await read('RefreshToken', 'token', ctx)
  await keep('Grant', 'family')
  await keep('Session', 'cookie', { uid: 'uid' })
  await rows.set('user', userId, { is_actived: true })
  expect(await read('Grant', 'family', ctx)).toBeUndefined()
  expect(await readUid('Session', 'uid', ctx)).toBeUndefined()
  expect(await nameOf(ctx)).toBeUndefined()
  // A row of another model, or of another key, is another one.
  await keep('Interaction', 'step', { uid: 'uid' })
  expect(await readUid('Interaction', 'uid', ctx)).toBe('Interaction step')
  await keep('Session', 'other', { uid: 'other' })
  expect(await readUid('Session', 'other', ctx)).toBe('Session other')
  expect(await nameOf(ctx, await rows.user())).toBeDefined()
})

test('a token that names no family, session or user comes alone', async () => {
  await keep('AccessToken', 'alone')
  const ctx = open('userinfo')
  expect(await read('AccessToken', 'alone', ctx)).toBe('AccessToken alone')
  const { rows: kept, sessions, users } = findRequestState(ctx)
  expect([kept.size, sessions.size, users.size]).toEqual([1, 0, 0])
  // What another row names is not read with it.
  await keep('Interaction', 'step', { payload: { accountId: userId } })
  const step = open()
  expect(await read('Interaction', 'step', step)).toBe('Interaction step')
  expect(findRequestState(step).users.size).toBe(0)
})

test.each([
  ['introspection', true],
  ['revocation', true],
  ['userinfo', false],
])('at %s a look-up as an access token answers that as a refresh token: %s', async (route, isBoth) => {
  for (const [first, second] of [
    ['AccessToken', 'RefreshToken'],
    ['RefreshToken', 'AccessToken'],
  ] as const) {
    await keep('AccessToken', 'text')
    await keep('RefreshToken', 'text')
    const ctx = open(route)
    expect(await read(first, 'text', ctx)).toBe(`${first} text`)
    await run('delete from oauth_state')
    expect(await read(second, 'text', ctx)).toBe(isBoth ? `${second} text` : undefined)
  }
})

test('a code is looked up as a code alone, also where tokens are looked up', async () => {
  for (const model of ['AuthorizationCode', 'AccessToken']) await keep(model, 'text')
  const ctx = open('introspection')
  expect(await read('AuthorizationCode', 'text', ctx)).toBe('AuthorizationCode text')
  await run('delete from oauth_state')
  expect(await read('AccessToken', 'text', ctx)).toBeUndefined()
})

test('a browser is read once, with its session, user, grant and family', async () => {
  const [clientId, sessionId] = [await addClient(), await rows.session(userId, { amr: ['pwd'], acr: 'aal1' })]
  const authorizations = { [clientId]: { grantId: 'family' } }
  await keep('Session', 'cookie', { payload: { authorizations } })
  await keep('Grant', 'family')
  const grant = { userId, clientId, scopes: ['openid'], refusedScopes: [], redirectUris: [] }
  await upsertGrant(database.db, { id: randomUUID() as string as GrantId, ...grant, now: MADE_AT })
  const ctx = open()
  findRequestState(ctx).browser = { userId, sessionId, clientId }
  expect(await read('Session', 'cookie', ctx)).toBe('Session cookie')
  // Another request reads the grant itself.
  expect(await readGrant(deps(), { userId, clientId }, open())).toMatchObject({ scopes: ['openid'] })
  await run('delete from oauth_state')
  await run('delete from oauth_grant')
  await rows.set('user', userId, { is_actived: false })
  await run('delete from session where document_id = $1', sessionId)
  expect(await read('Session', 'cookie', ctx)).toBe('Session cookie')
  expect(await read('Grant', 'family', ctx)).toBe('Grant family')
  expect(await readUser(deps(), ctx)).toEqual({ userId, sessionId, amr: ['pwd'], acr: 'aal1', authTime: MADE_AT })
  expect(await nameOf(ctx)).toMatchObject({ id: userId })
  expect(await readGrant(deps(), { userId, clientId }, ctx)).toMatchObject({ scopes: ['openid'] })
  expect(await readGrant(deps(), { userId, clientId }, open())).toBeUndefined()
})

test('a browser without a session of the provider, a client or a sign-in has none of them', async () => {
  const sessionId = await rows.session(userId)
  const ctx = open()
  expect(await readUser(deps(), ctx)).toBeUndefined()
  findRequestState(ctx).browser = { userId, sessionId, clientId: undefined }
  expect(await readUser(deps(), ctx)).toMatchObject({ userId, sessionId })
  const { rows: kept, grants } = findRequestState(ctx)
  expect([kept.size, grants.size]).toEqual([0, 0])
  const gone = open()
  findRequestState(gone).browser = { userId, sessionId: randomUUID() as typeof sessionId, clientId: undefined }
  expect(await readUser(deps(), gone)).toBeUndefined()
})

test('a session of the provider without a browser is read alone, and so is one without families', async () => {
  await keep('Session', 'cookie')
  expect(await read('Session', 'cookie', open('end_session'))).toBe('Session cookie')
  const ctx = open()
  const sessionId = await rows.session(userId)
  // A name that every object has is no client.
  findRequestState(ctx).browser = { userId, sessionId, clientId: 'constructor' }
  expect(await read('Session', 'cookie', ctx)).toBe('Session cookie')
  expect(findRequestState(ctx).rows.size).toBe(1)
  expect(await readGrant(deps(), { userId, clientId: 'constructor' }, ctx)).toBeUndefined()
})
