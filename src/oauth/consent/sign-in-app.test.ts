import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { MADE_AT, madeAfter } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { buildFlowCookies } from '../../identity/pages/browser/flow-cookie.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { type ClientId, insertClient } from '../client/client.store.ts'
import { DEFAULT_SETTINGS } from '../client/client.ts'
import { hashStateId } from '../grant/state-id.ts'
import { upsertState } from '../provider/state/state.store.ts'
import { answerInteraction, findAppName, findInteraction } from './interaction.store.ts'
import { buildFindApp, ENTRY } from './sign-in-app.ts'

/** Two authorizations, each of a client of its own. */
let one: string
let two: string
const { db } = await openForFile(createTestDatabase())
beforeEach(async () => {
  ;[one, two] = [await begin('One'), await begin('Two')]
})

const EXPIRES_AT = madeAfter(1_800_000)

async function begin(name: string, model = 'Interaction') {
  const [id, client] = [randomUUID(), randomUUID() as string as ClientId]
  const settings = { ...DEFAULT_SETTINGS, name, type: 'confidential' as const, registration: 'administrator' as const }
  const row = { ...settings, id: client, logoHash: null, redirectUris: ['https://app.example.com/callback'] }
  await inTransaction(db, (tx) => insertClient(tx, { ...row, createdAt: MADE_AT, updatedAt: MADE_AT }, undefined))
  await upsertState(db, {
    ...{ model, idHash: hashStateId(id), grantId: null, consent: null, uid: null, userCodeHash: null },
    payload: {
      ...{ kind: model, iat: MADE_AT.getTime() / 1000, returnTo: `https://id.example.test/${id}` },
      ...{ prompt: { name: 'consent', reasons: ['op_scopes_missing'] }, params: { client_id: client } },
    },
    expiresAt: EXPIRES_AT,
  })
  return id
}

const lastMoment = new Date(EXPIRES_AT.getTime() - 1)
const resultOf = async (id: string) =>
  (await db.selectFrom('oauth_state').selectAll().where('id_hash', '=', hashStateId(id)).executeTakeFirstOrThrow())
    .payload as { result?: unknown }

describe('a question of the provider', () => {
  test('is found by its id until it expires', async () => {
    expect(await findInteraction(db, one, lastMoment)).toMatchObject({
      ...{ id: one, prompt: 'consent', reasons: ['op_scopes_missing'], returnTo: `https://id.example.test/${one}` },
      ...{ accountId: null, lastAnswers: {}, tokenFamilyId: null, createdAt: MADE_AT, isAnswered: false },
    })
    expect(await findInteraction(db, two, MADE_AT)).toMatchObject({ id: two })
    expect(await findInteraction(db, one, EXPIRES_AT)).toBeUndefined()
    expect(await findInteraction(db, randomUUID(), MADE_AT)).toBeUndefined()
    expect(await findInteraction(db, await begin('Other', 'Session'), MADE_AT)).toBeUndefined()
  })

  test('is of the app of its client, until it expires or the client is deleted', async () => {
    expect(await findAppName(db, one, lastMoment)).toBe('One')
    expect(await findAppName(db, two, MADE_AT)).toBe('Two')
    expect(await findAppName(db, one, EXPIRES_AT)).toBeUndefined()
    expect(await findAppName(db, await begin('Other', 'Session'), MADE_AT)).toBeUndefined()
    await db.updateTable('oauth_client').set({ deleted_at: MADE_AT }).where('name', '=', 'One').execute()
    expect(await findAppName(db, one, MADE_AT)).toBeUndefined()
  })

  test('is answered alone', async () => {
    await inTransaction(db, (tx) => answerInteraction(tx, one, { consent: { grantId: 'g' } }))
    expect(await resultOf(one)).toMatchObject({ kind: 'Interaction', result: { consent: { grantId: 'g' } } })
    expect(await resultOf(two)).not.toHaveProperty('result')
    const session = await begin('Other', 'Session')
    await inTransaction(db, (tx) => answerInteraction(tx, session, {}))
    expect(await resultOf(session)).not.toHaveProperty('result')
  })
})

describe('the app of a sign-in', () => {
  const cookies = buildFlowCookies(buildKeyring(['k'.repeat(32)], systemRandom), { isSecure: true, isHostBound: true })
  const findApp = buildFindApp(cookies)
  let own: string
  beforeEach(() => {
    const [cookie] = cookies.begin(undefined, { id: one, lifetimeSeconds: 60, now: MADE_AT })
    own = `${cookie?.name}=${cookie?.value}`
  })
  const find = (next: string | undefined, cookieHeader: string | undefined = own) =>
    findApp(db, { next, cookieHeader, now: MADE_AT })

  test('is that of the authorization which began in this browser', async () => {
    expect(await find(`${ENTRY}/sign-in?id=${one}`)).toBe('One')
    expect(await find(`${ENTRY}/consent?a=b&id=${one}`, `a=b; ${own}`)).toBe('One')
  })

  test('is none elsewhere, or for an authorization of another browser', async () => {
    for (const next of [undefined, '/', `/auth/account?id=${one}`, `${ENTRY}?id=${one}`, `${ENTRY}/consent`])
      expect(await find(next)).toBeUndefined()
    expect(await find(`${ENTRY}/sign-in?id=${two}`)).toBeUndefined()
    expect(await find(`${ENTRY}/sign-in?id=${one}`, 'a=b')).toBeUndefined()
    const next = `${ENTRY}/sign-in?id=${one}`
    expect(await findApp(db, { next, cookieHeader: undefined, now: MADE_AT })).toBeUndefined()
  })
})
