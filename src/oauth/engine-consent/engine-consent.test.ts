import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { buildIdMaker, type UserId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import type { SupabaseAnswer, SupabaseClient } from '../../identity/engine/supabase/supabase-client.ts'
import { listOpenRevocations } from '../grant/engine-grant.store.ts'
import { buildEngineConsent } from './engine-consent.ts'
import { claimDecision } from './engine-decision.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')

const [user, other] = [randomUUID(), randomUUID()] as string[] as [UserId, UserId]
const database = await openForFile(createTestDatabase())
for (const id of [user, other])
  await database.db
    .insertInto('user')
    .values({ document_id: id, email: `${id}@b.test`, created_at: NOW, updated_at: NOW })
    .execute()

/** No call reaches the engine. */
const consent = buildEngineConsent({
  client: {} as SupabaseClient,
  keyring: buildKeyring(['a'.repeat(32)], systemRandom),
  ids: buildIdMaker(buildManualClock(), systemRandom),
})
const decide = (authorizationId: string, userId = user) =>
  consent.decide(database.db, {
    ...{ authorizationId, user: { userId, token: 'token' }, decision: 'approve', scopes: [], now: NOW },
  })
const claim = (authorizationId: string, db = database.db) =>
  claimDecision(db, {
    ...{ authorizationId, userId: user, decision: 'approve', apiScope: '', now: NOW, staleBefore: new Date(0) },
  })
const inFlight = { code: 'conflict', detail: expect.stringContaining('is being decided') }

test('a decision that another call has just claimed, or is asking the engine about, is in flight', async () => {
  const refused = await whileHeld(
    database.db,
    (tx) => claim('one', tx),
    () => decide('one').catch((error: unknown) => error),
  )
  expect(refused).toMatchObject(inFlight)
  await expect(decide('one')).rejects.toMatchObject(inFlight)
  await expect(decide('one', other)).rejects.toMatchObject(inFlight)
})

const APP = '0198e3a0-0000-7000-8000-00000000000a'
const AUTHORIZE_URL = 'https://app.example.com/callback?code=c&state=s'
const ASKED = {
  ...{ client: { id: APP, name: 'App' }, redirect_uri: 'https://app.example.com/callback', scope: 'openid email' },
}
const answer = async (data: unknown) => ({ ok: true, data }) as SupabaseAnswer

/** Consent at an engine that answers this, with what it was asked. */
function open(change: Partial<SupabaseClient>) {
  const calls: string[] = []
  const client = {
    readAuthorization: () => answer(ASKED),
    decideAuthorization: async (_token: string, id: string, action: string) => {
      calls.push(`${action} ${id}`)
      return answer({ redirect_url: AUTHORIZE_URL })
    },
    listGrants: () => answer([]),
    ...change,
  } as unknown as SupabaseClient
  const deps = { client, keyring: buildKeyring(['a'.repeat(32)], systemRandom) }
  const at = buildEngineConsent({ ...deps, ids: buildIdMaker(buildManualClock(), systemRandom) })
  const ids = randomUUID()
  return {
    calls,
    describe: () => at.describe(database.db, { userId: user, token: 'token' }, { authorizationId: ids, now: NOW }),
    decide: (decision: 'approve' | 'deny', scopes: readonly string[] = [], userId = user) =>
      at.decide(database.db, { authorizationId: ids, user: { userId, token: 'token' }, decision, scopes, now: NOW }),
    id: ids,
  }
}
const listGranted = async () =>
  (
    await database.pool.query(
      'select client, client_name as name, scopes from engine_grant where "user" = $1 order by 1',
      [user],
    )
  ).rows

describe('the request of an app', () => {
  test('is told with its name and its scopes', async () => {
    const pending = { kind: 'pending', clientId: APP, redirectUri: ASKED.redirect_uri }
    expect(await open({}).describe()).toEqual({ ...pending, clientName: 'App', scopes: ['openid', 'email'] })
    const nameless = { ...ASKED, client: { id: APP }, scope: undefined }
    const { describe } = open({ readAuthorization: () => answer(nameless) })
    expect(await describe()).toEqual({ ...pending, clientName: APP, scopes: [] })
  })

  test.each([
    ['names no app', { ...ASKED, client: undefined }],
    ['has an id that cannot be stored', { ...ASKED, client: { id: 'a\0b' } }],
    ['has no redirect URI', { ...ASKED, redirect_uri: null }],
    ['goes on to what is no URL', { redirect_url: 'nowhere' }],
    ['goes on to no text', { redirect_url: 7 }],
  ])('that %s is a fault of the engine', async (_name, data) => {
    await expect(open({ readAuthorization: () => answer(data) }).describe()).rejects.toMatchObject({ status: 503 })
  })

  test.each([
    [400, 409],
    [403, 404],
    [404, 404],
    [429, 503],
    [500, 503],
    [502, 503],
  ])('that the engine answers with %i is a %i', async (engine, status) => {
    const refuse = async () => ({ ok: false, status: engine, code: 'x' }) as SupabaseAnswer
    await expect(open({ readAuthorization: refuse }).describe()).rejects.toMatchObject({ status })
  })

  test('to an engine that is not there is a 503', async () => {
    const fail = () => Promise.reject(new Error('no connection'))
    await expect(open({ readAuthorization: fail }).describe()).rejects.toMatchObject({
      ...{ status: 503, headers: { 'retry-after': '5' } },
    })
  })

  test.each<[string, unknown, object[]]>([
    ['no list', { message: 'no list' }, []],
    ['nothing of use', [null, {}, { client: { id: 7 }, scopes: [] }, { client: { id: 'x' }, scopes: [] }], []],
    ['an app without scopes', [{ client: { id: APP, name: 'App' } }], []],
    [
      'apps, one of them twice',
      [
        { client: { id: APP.toUpperCase(), name: 'First' }, scopes: [] },
        { client: { id: APP }, scopes: ['openid', 7, 'a\0b'] },
      ],
      [{ client: APP, name: APP, scopes: ['openid'] }],
    ],
  ])('that an earlier consent covers is recorded as the engine lists it: %s', async (_name, listed, granted) => {
    await database.pool.query('delete from engine_grant')
    const covering = open({
      readAuthorization: () => answer({ redirect_url: AUTHORIZE_URL }),
      listGrants: () => answer(listed),
    })
    expect(await covering.describe()).toEqual({ kind: 'covered', authorizeUrl: AUTHORIZE_URL })
    expect(await listGranted()).toEqual(granted)
  })

  test('that an earlier consent covers is recorded with 200 apps at most', async () => {
    await database.pool.query('delete from engine_grant')
    const listed = Array.from({ length: 201 }, () => ({ client: { id: randomUUID() }, scopes: [] }))
    const readAuthorization = () => answer({ redirect_url: AUTHORIZE_URL })
    await open({ readAuthorization, listGrants: () => answer(listed) }).describe()
    expect(await listGranted()).toHaveLength(200)
  })
})

describe('grants that the user has revoked here', () => {
  const addRevoked = (count: number) =>
    database.pool.query(
      `insert into engine_grant (document_id, "user", client, client_name, scopes, created_at, updated_at, revoked_at)
       select gen_random_uuid(), $1, gen_random_uuid(), 'App', '{}', now(), now(), now() from generate_series(1, $2::int)`,
      [user, count],
    )
  const countOpen = async () => (await listOpenRevocations(database.db, { userId: user })).length

  beforeEach(() => database.pool.query('delete from engine_grant'))

  test('are revoked at the engine ten at once, before the request is read', async () => {
    await addRevoked(25)
    const waiting: (() => void)[] = []
    const groups: number[] = []
    // Answers once no call is made any more: those of a group are made in one turn.
    const revokeGrant = async () => {
      if (waiting.length === 0)
        setImmediate(() => {
          groups.push(waiting.length)
          for (const answerOne of waiting.splice(0)) answerOne()
        })
      await new Promise<void>((resolve) => waiting.push(resolve))
      return { ok: false, status: 404, code: 'not_found' } as SupabaseAnswer
    }
    let openAtRead = -1
    const readAuthorization = async () => {
      openAtRead = await countOpen()
      return answer(ASKED)
    }
    expect(await open({ revokeGrant, readAuthorization }).describe()).toMatchObject({ kind: 'pending' })
    expect([groups, openAtRead]).toEqual([[10, 10, 5], 0])
  })

  test.each([
    ['answers with 500', async () => ({ ok: false, status: 500, code: 'x' }) as SupabaseAnswer],
    ['does not answer', () => Promise.reject(new Error('no connection'))],
  ])('stay open where the engine %s, and those beside them do not', async (_name, fail) => {
    await addRevoked(15)
    const [refused] = await listOpenRevocations(database.db, { userId: user })
    const revokeGrant = (_token: string, clientId: string) => (clientId === refused ? fail() : answer({}))
    await expect(open({ revokeGrant }).describe()).rejects.toMatchObject({ status: 503 })
    expect(await countOpen()).toBe(6)
    await open({ revokeGrant: () => answer({}) }).describe()
    expect(await countOpen()).toBe(0)
  })
})

describe('a decision', () => {
  beforeEach(() => database.pool.query('delete from engine_grant'))

  test('is sent once, and a repeat gets the same address', async () => {
    const one = open({})
    const decided = await one.decide('approve', ['webhook:read', 'openid', 'unknown'])
    expect(decided).toEqual({ authorizeUrl: AUTHORIZE_URL, clientId: APP, grantId: expect.any(String) })
    expect(await listGranted()).toEqual([{ client: APP, name: 'App', scopes: ['openid', 'email', 'webhook:read'] }])
    expect(await one.decide('approve')).toEqual({ authorizeUrl: AUTHORIZE_URL, clientId: APP, grantId: null })
    expect(one.calls).toEqual([`approve ${one.id}`])
    await expect(one.decide('deny')).rejects.toMatchObject({ code: 'conflict' })
    await expect(one.decide('approve', [], other)).rejects.toMatchObject({ status: 404 })
  })

  test('that denies grants nothing', async () => {
    const one = open({})
    expect(await one.decide('deny', ['webhook:read'])).toEqual({
      ...{ authorizeUrl: AUTHORIZE_URL, clientId: APP, grantId: null },
    })
    expect([one.calls, await listGranted()]).toEqual([[`deny ${one.id}`], []])
  })

  test('about an app that has no id of ours grants nothing', async () => {
    const one = open({ readAuthorization: () => answer({ ...ASKED, client: { id: 'an app' } }) })
    expect(await one.decide('approve')).toMatchObject({ clientId: 'an app', grantId: null })
    expect(await listGranted()).toEqual([])
  })

  test('about what an earlier consent covers is not sent; a denial takes the code out of the address', async () => {
    const readAuthorization = () => answer({ redirect_url: AUTHORIZE_URL })
    const [approving, denying] = [open({ readAuthorization }), open({ readAuthorization })]
    const none = { clientId: null, grantId: null }
    expect(await approving.decide('approve')).toEqual({ ...none, authorizeUrl: AUTHORIZE_URL })
    const denied = 'https://app.example.com/callback?state=s&error=access_denied'
    expect(await denying.decide('deny')).toEqual({ ...none, authorizeUrl: denied })
    expect([...approving.calls, ...denying.calls]).toEqual([])
  })

  test('that the engine refuses may be made again', async () => {
    const one = open({ decideAuthorization: async () => ({ ok: false, status: 500, code: 'x' }) })
    for (let at = 0; at < 2; at += 1) await expect(one.decide('approve')).rejects.toMatchObject({ status: 503 })
  })
})
