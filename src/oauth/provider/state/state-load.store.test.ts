import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../../test/harness/database/identity-rows.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import { type ClientId, insertClient } from '../../client/client.store.ts'
import { DEFAULT_SETTINGS } from '../../client/client.ts'
import { upsertGrant } from '../../grant/grant.store.ts'
import { hashStateId } from '../../grant/state-id.ts'
import { upsertState } from './state.store.ts'
import { loadBrowser, loadTokens } from './state-load.store.ts'

test('an authorization starts with the session of the provider and the family of the client, each until it expires', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const rows = buildIdentityRows(db)
  const userId = await rows.user()
  const sessionId = await rows.session(userId)
  const clientId = randomUUID()
  const keep = (model: string, id: string, payload: object, ms: number) =>
    upsertState(db, {
      ...{ model, idHash: hashStateId(id), payload: payload as Record<string, unknown>, expiresAt: madeAfter(ms) },
      ...{ grantId: null, consent: null, uid: null, userCodeHash: null },
    })
  const session = { authorizations: { [clientId]: { grantId: 'family' } } }
  await keep('Session', 'cookie', session, 20)
  await keep('Grant', 'family', { name: 'family' }, 10)
  await keep('Grant', 'other', { name: 'other' }, 20)
  const load = async (ms: number, key: { id?: string; clientId?: string } = {}) => {
    const { id = 'cookie', clientId: client = clientId } = key
    const now = madeAfter(ms)
    const loaded = await loadBrowser(db, { idHash: hashStateId(id), sessionId, userId, clientId: client, now })
    return [loaded.session?.payload, loaded.tokenFamily?.payload]
  }
  expect(await load(9)).toEqual([session, { name: 'family' }])
  expect(await load(10)).toEqual([session, undefined])
  expect(await load(20)).toEqual([undefined, undefined])
  expect(await load(0, { clientId: randomUUID() })).toEqual([session, undefined])
  expect(await load(0, { id: 'another' })).toEqual([undefined, undefined])
})

test('a token is read with its family and its session, each of its own model, until they expire', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const keep = (model: string, id: string, more: { uid?: string; grantId?: string; payload?: object; ms?: number }) =>
    upsertState(db, {
      ...{ model, idHash: hashStateId(id), consent: null, userCodeHash: null, expiresAt: madeAfter(more.ms ?? 60) },
      ...{ uid: more.uid ?? null, grantId: more.grantId ?? null },
      payload: { name: `${model} ${id}`, ...more.payload },
    })
  await keep('AccessToken', 'token', { grantId: 'family', payload: { sessionUid: 'uid' } })
  // Of other models under the same keys.
  await keep('Interaction', 'beside', { uid: 'uid' })
  await keep('Session', 'family', {})
  const load = async (ms = 0) => {
    const [found] = await loadTokens(db, { models: ['AccessToken'], idHash: hashStateId('token'), now: madeAfter(ms) })
    return found && [found.found.payload.name, found.tokenFamily?.payload.name, found.session?.payload.name]
  }
  expect(await load()).toEqual(['AccessToken token', undefined, undefined])
  await keep('Grant', 'family', { ms: 10 })
  await keep('Session', 'cookie', { uid: 'uid', ms: 20 })
  expect(await load(9)).toEqual(['AccessToken token', 'Grant family', 'Session cookie'])
  expect(await load(10)).toEqual(['AccessToken token', undefined, 'Session cookie'])
  expect([await load(20), await load(60)]).toEqual([['AccessToken token', undefined, undefined], undefined])
})

test('an authorization starts with what its user allows the client, unless that was revoked', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const rows = buildIdentityRows(db)
  const [userId, other] = [await rows.user(), await rows.user()]
  const sessionId = await rows.session(userId)
  const clientId = randomUUID()
  const settings = { ...DEFAULT_SETTINGS, name: 'App', type: 'confidential' as const, logoHash: null }
  const client = { ...settings, id: clientId as string as ClientId, redirectUris: ['https://app.example.com/callback'] }
  const times = { createdAt: MADE_AT, updatedAt: MADE_AT }
  await inTransaction(db, (tx) => insertClient(tx, { ...client, registration: 'administrator', ...times }, undefined))
  for (const user of [userId, other])
    await upsertGrant(db, {
      ...{ id: newId(), userId: user, clientId: client.id, scopes: [user === userId ? 'openid' : 'email'] },
      ...{ refusedScopes: [], redirectUris: [], now: MADE_AT },
    })
  const load = async (client = clientId) =>
    (await loadBrowser(db, { idHash: null, sessionId, userId, clientId: client, now: MADE_AT })).grant?.scopes
  expect(await load()).toEqual(['openid'])
  expect(await load(randomUUID())).toBeUndefined()
  await db.updateTable('oauth_grant').set({ revoked_at: MADE_AT }).where('user', '=', userId).execute()
  expect(await load()).toBeUndefined()
})
