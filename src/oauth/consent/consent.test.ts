import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter } from '../../../test/harness/database/identity-rows.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { buildIdMaker, type UserId } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { type ClientId, insertClient } from '../client/client.store.ts'
import { DEFAULT_SETTINGS } from '../client/client.ts'
import { findGrantIdOf, hashStateId } from '../grant/state-id.ts'
import { upsertState } from '../provider/state/state.store.ts'
import { decideConsent, decideScopes } from './consent.ts'

const [CALLBACK, ELSEWHERE] = ['https://app.example.com/callback', 'https://app.example.com/elsewhere']
const deps = {
  ...{ ids: buildIdMaker(buildManualClock(), systemRandom), random: systemRandom },
  apiResource: () => 'https://id.example.test/api/v3',
}

/** A user and a client that know nothing of each other. */
let userId: UserId
let client: ClientId
const { db } = await openForFile(createTestDatabase())
beforeEach(async () => {
  ;[userId, client] = [await buildIdentityRows(db).user(), randomUUID() as string as ClientId]
  const settings = { ...DEFAULT_SETTINGS, name: 'App', type: 'confidential' as const, registration: 'dynamic' as const }
  const row = { ...settings, id: client, logoHash: null, redirectUris: [CALLBACK, ELSEWHERE] }
  await inTransaction(db, (tx) => insertClient(tx, { ...row, createdAt: MADE_AT, updatedAt: MADE_AT }, undefined))
})

/** Asks the user with these parameters, in a browser with this family of tokens, and decides. */
async function decide(
  params: object,
  more: { scopes?: string[]; isApproved?: boolean; grantId?: string; decider?: UserId } = {},
) {
  const { scopes, isApproved = true, grantId, decider = userId } = more
  const id = randomUUID()
  await upsertState(db, {
    ...{ model: 'Interaction', idHash: hashStateId(id), grantId: null, consent: null, uid: null, userCodeHash: null },
    payload: {
      ...{ kind: 'Interaction', iat: MADE_AT.getTime() / 1000, returnTo: `https://id.example.test/${id}` },
      ...{ prompt: { name: 'consent', reasons: ['op_scopes_missing'] }, session: { accountId: userId } },
      ...{ params: { client_id: client, scope: 'openid email', ...params }, lastSubmission: { login: 'kept' } },
      ...(grantId !== undefined && { grantId }),
    },
    expiresAt: madeAfter(1_800_000),
  })
  const decision = { authorizationId: id, isApproved, scopes, userId: decider, sessionId: null, now: MADE_AT }
  const recorded = await inTransaction(db, (tx) => decideConsent(deps, tx, decision))
  return { ...recorded, result: (await payloadOf(id)).result as { consent?: { grantId: string } } }
}
const payloadOf = async (id: string) => {
  const row = db.selectFrom('oauth_state').select('payload').where('id_hash', '=', hashStateId(id))
  return (await row.executeTakeFirstOrThrow()).payload as Record<string, unknown>
}

describe('an approval', () => {
  test('holds for its redirect URI beside those of earlier ones, each once', async () => {
    const first = await decide({ redirect_uri: CALLBACK })
    expect(first.grant?.redirectUris).toEqual([CALLBACK])
    await decide({ redirect_uri: ELSEWHERE })
    const again = await decide({ redirect_uri: CALLBACK })
    expect(again.grant).toMatchObject({ id: first.grant?.id, redirectUris: [CALLBACK, ELSEWHERE] })
  })

  test('of a device has no redirect URI, and takes none away', async () => {
    expect((await decide({})).grant?.redirectUris).toEqual([])
    await decide({ redirect_uri: CALLBACK })
    expect((await decide({})).grant?.redirectUris).toEqual([CALLBACK])
  })

  test('answers with the family of its browser where that is of the grant, and with a new one otherwise', async () => {
    const first = await decide({})
    const family = first.result.consent!.grantId
    expect(first.result).toEqual({ login: 'kept', consent: { grantId: expect.any(String) } })
    expect(findGrantIdOf(family)).toBe(first.grant?.id)
    const iat = MADE_AT.getTime() / 1000
    const exp = iat + 90 * 24 * 3_600
    expect(await payloadOf(family)).toMatchObject({ kind: 'Grant', accountId: userId, clientId: client, iat, exp })
    const kept = db.selectFrom('oauth_state').select('expires_at').where('id_hash', '=', hashStateId(family))
    expect(await kept.executeTakeFirst()).toEqual({ expires_at: new Date(exp * 1000) })
    expect((await decide({}, { grantId: family })).result.consent?.grantId).toBe(family)
    const fresh = await decide({}, { grantId: `${randomUUID()}.part` })
    expect(fresh.result.consent?.grantId).not.toBe(family)
    expect(findGrantIdOf(fresh.result.consent!.grantId)).toBe(first.grant?.id)
  })

  test('of less takes the rest from other browsers, and of the same or more takes nothing', async () => {
    const asked = { scope: 'openid email contract:read' }
    const family = (await decide(asked)).result.consent!.grantId
    const scopeOf = async () => ((await payloadOf(family)).openid as { scope: string }).scope.split(' ').toSorted()
    const { grant } = await decide({ scope: 'openid profile' })
    expect(await scopeOf()).toEqual(['contract:read', 'email', 'openid'])
    const rows = buildIdentityRows(db)
    const [ofApp, other] = [
      await rows.session(userId, { grant_id: grant?.id, client_id: client, scope: 'openid' }),
      await rows.session(userId),
    ]
    const readEnds = async () => {
      const found = await db.selectFrom('session').select(['document_id', 'revoked_at']).execute()
      return [ofApp, other].map((id) => found.find((row) => row.document_id === id)?.revoked_at)
    }
    await decide({ scope: 'openid' })
    expect(await readEnds()).toEqual([null, null])
    await decide(asked, { scopes: ['openid', 'email'] })
    expect(await scopeOf()).toEqual(['email', 'openid', 'profile'])
    // They would have the scopes of before.
    expect(await readEnds()).toEqual([MADE_AT, null])
  })
})

test('a refusal is answered as one, and grants nothing', async () => {
  const refused = await decide({}, { isApproved: false })
  expect(refused).toMatchObject({ grant: null, clientId: client, result: { error: 'access_denied' } })
  expect(await db.selectFrom('oauth_grant').select('document_id').where('client', '=', client).execute()).toEqual([])
})

test('a decision is of the user who was asked, and of no question that is unknown', async () => {
  const [asked, notFound] = [userId, { code: 'not_found' }]
  userId = await buildIdentityRows(db).user()
  await expect(decide({}, { decider: asked })).rejects.toMatchObject(notFound)
  const decision = { authorizationId: randomUUID(), isApproved: true, scopes: undefined, userId, sessionId: null }
  const unknown = inTransaction(db, (tx) => decideConsent(deps, tx, { ...decision, now: MADE_AT }))
  await expect(unknown).rejects.toMatchObject(notFound)
  expect(await db.selectFrom('oauth_grant').select('document_id').where('client', '=', client).execute()).toEqual([])
})

describe('the scopes of a decision', () => {
  const asked = ['openid', 'email', 'contract:read']
  const decideOn = (chosen: string[] | undefined, before?: { scopes: string[]; refusedScopes: string[] }) =>
    decideScopes(asked, chosen, before)

  test('are all that were asked for, or those that were chosen beside what each approval gives', () => {
    expect(decideOn(undefined)).toEqual({ scopes: asked, refusedScopes: [] })
    expect(decideOn(['email'])).toEqual({ scopes: ['openid', 'email'], refusedScopes: ['contract:read'] })
    expect(decideOn([])).toEqual({ scopes: ['openid'], refusedScopes: ['email', 'contract:read'] })
  })

  test('are none that was not asked for, wherever it stands', () => {
    const refusal = (at: number) =>
      expect.objectContaining({ errors: [expect.objectContaining({ path: `scopes.${at}` })] })
    expect(() => decideOn(['contract:write', 'email'])).toThrow(refusal(0))
    expect(() => decideOn(['email', 'contract:write'])).toThrow(refusal(1))
  })

  test('keep what was decided before about others, and replace what was decided about these', () => {
    const before = { scopes: ['openid', 'email', 'account:read'], refusedScopes: ['contract:read', 'contract:write'] }
    expect(decideOn(['contract:read'], before)).toEqual({
      scopes: ['openid', 'account:read', 'contract:read'],
      refusedScopes: ['contract:write', 'email'],
    })
  })

  test('may be those of claims alone', async () => {
    const claims = JSON.stringify({ userinfo: { email: null } })
    expect((await decide({ scope: undefined, claims })).grant?.scopes).toEqual(['email'])
  })
})
