import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { type ClientId, insertClient } from '../client/client.store.ts'
import { DEFAULT_SETTINGS } from '../client/client.ts'
import { hashStateId } from '../grant/state-id.ts'
import { upsertState } from '../provider/state/state.store.ts'
import {
  answerInteraction,
  findAppName,
  findInteraction,
  narrowTokenFamilies,
  writeTokenFamily,
} from './interaction.store.ts'

const EXPIRES_AT = new Date('2026-09-11T12:00:00.000Z')

async function openFamilies() {
  const database = await createTestDatabase()
  const write = (act: (tx: Database) => Promise<void>) => inTransaction(database.db, act)
  /** Writes a family of tokens; returns its id. */
  const add = async (grantId: string) => {
    const tokenFamilyId = randomUUID()
    const payload = { scope: 'wide', kind: 'Grant' }
    await write((tx) => writeTokenFamily(tx, { tokenFamilyId, grantId, payload, expiresAt: EXPIRES_AT }))
    return tokenFamilyId
  }
  const scopes = async () => {
    const { rows } = await database.pool.query(
      `select grant_id, payload->>'scope' as scope from oauth_state where payload->>'kind' = 'Grant'`,
    )
    return Object.fromEntries(rows.map((row) => [row.grant_id, row.scope]))
  }
  const narrow = (grantId: string, except: string | null) =>
    write((tx) => narrowTokenFamilies(tx, { grantId, except, members: { scope: 'narrow' } }))
  return { add, scopes, narrow, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

test('the families of a grant are narrowed, except one; those of another grant are not', async () => {
  await using t = await openFamilies()
  const [grant, foreign] = [randomUUID(), randomUUID()]
  const [one, two, other] = [await t.add(grant), await t.add(grant), await t.add(foreign)]
  await t.narrow(grant, two)
  expect(await t.scopes()).toEqual({ [one]: 'narrow', [two]: 'wide', [other]: 'wide' })
  await t.narrow(grant, null)
  expect(await t.scopes()).toEqual({ [one]: 'narrow', [two]: 'narrow', [other]: 'wide' })
})

test('a question is found until it ends, with its app until that is deleted, and answered alone', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const client = randomUUID() as string as ClientId
  const settings = { ...DEFAULT_SETTINGS, name: 'App', type: 'public' as const, registration: 'dynamic' as const }
  const row = { ...settings, id: client, logoHash: null, redirectUris: ['https://app.example.com/'] }
  const made = { createdAt: EXPIRES_AT, updatedAt: EXPIRES_AT }
  await inTransaction(db, (tx) => insertClient(tx, { ...row, ...made }, undefined))
  const params = { client_id: client }
  const payload = {
    kind: 'Interaction',
    iat: 5,
    returnTo: '/next',
    prompt: { name: 'login', reasons: ['none'] },
    params,
  }
  const none = { grantId: null, consent: null, uid: null, userCodeHash: null, expiresAt: EXPIRES_AT }
  const [id, other] = [randomUUID(), randomUUID()]
  for (const each of [id, other])
    await upsertState(db, { ...none, model: 'Interaction', idHash: hashStateId(each), payload })
  // What is stored of another kind has an id of its own.
  const foreign = randomUUID()
  for (const each of [id, foreign])
    await upsertState(db, {
      ...none,
      model: 'Session',
      idHash: hashStateId(each),
      payload: { ...payload, kind: 'Session' },
    })
  const before = new Date(EXPIRES_AT.getTime() - 1)

  const found = {
    id,
    prompt: 'login',
    reasons: ['none'],
    params,
    accountId: null,
    lastAnswers: {},
    tokenFamilyId: null,
  }
  expect(await findInteraction(db, id, before)).toEqual({
    ...{ ...found, returnTo: '/next', createdAt: new Date(5_000), isAnswered: false },
  })
  expect([await findInteraction(db, id, EXPIRES_AT), await findInteraction(db, foreign, before)]).toEqual([
    ...[undefined, undefined],
  ])
  const names = (now: Date) => Promise.all([id, foreign].map((each) => findAppName(db, each, now)))
  expect([await names(before), await names(EXPIRES_AT)]).toEqual([
    ['App', undefined],
    [undefined, undefined],
  ])
  await database.pool.query('update oauth_client set deleted_at = now()')
  expect(await findAppName(db, id, before)).toBeUndefined()

  await inTransaction(db, (tx) => answerInteraction(tx, id, { login: 'done' }))
  const { rows } = await database.pool.query(
    `select model, id_hash = $1 as is_own, payload -> 'result' as result, payload - 'result' as rest from oauth_state
     order by model, id_hash = $1 desc`,
    [hashStateId(id)],
  )
  expect(rows.map(({ model, is_own, result }) => [model, is_own, result])).toEqual([
    ['Interaction', true, { login: 'done' }],
    ['Interaction', false, null],
    ['Session', true, null],
    ['Session', false, null],
  ])
  expect(rows[0].rest).toEqual(payload)
})
