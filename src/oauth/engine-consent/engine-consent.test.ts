import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildIdMaker, type UserId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import type { SupabaseClient } from '../../identity/engine/supabase/supabase-client.ts'
import { buildEngineConsent } from './engine-consent.ts'
import { claimDecision } from './engine-decision.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')

let database: TestDatabase
const [user, other] = [randomUUID(), randomUUID()] as string[] as [UserId, UserId]
beforeAll(async () => {
  database = await createTestDatabase()
  for (const id of [user, other])
    await database.db
      .insertInto('user')
      .values({ document_id: id, email: `${id}@b.test`, created_at: NOW, updated_at: NOW })
      .execute()
})
afterAll(() => database[Symbol.asyncDispose]())

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

test('an answer without a list of grants records none of an authorization that the engine covers itself', async () => {
  const listed = { message: 'no list' }
  const client = {
    readAuthorization: async () => ({ ok: true, data: { redirect_url: 'https://app.example.com/?code=c' } }),
    listGrants: async () => ({ ok: true, data: listed }),
  } as unknown as SupabaseClient
  const covering = buildEngineConsent({
    client,
    keyring: buildKeyring(['a'.repeat(32)], systemRandom),
    ids: buildIdMaker(buildManualClock(), systemRandom),
  })
  expect(
    await covering.describe(database.db, { userId: user, token: 'token' }, { authorizationId: 'two', now: NOW }),
  ).toEqual({ kind: 'covered', authorizeUrl: 'https://app.example.com/?code=c' })
})
