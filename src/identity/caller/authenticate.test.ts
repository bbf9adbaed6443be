import { createHash, randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { buildIdentityApp } from '../../../test/harness/app/identity-app.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, ConnectionId, SessionId, UserId } from '../../base/id.ts'
import { signSessionToken } from '../session/token/session-token.ts'
import { buildAuthenticate } from './authenticate.ts'
import { buildCallerCache } from './caller-cache.ts'

const SESSION_MS = 5 * 60_000
const KEY_MS = 60_000
const DAY_MS = 24 * 3_600_000

const app = await openForFile(buildIdentityApp())
const { db } = app
const rows = buildIdentityRows(db)
const cache = buildCallerCache(() => true)
const authenticate = buildAuthenticate({
  ...{ db, clock: app.clock, sessionSecrets: app.keys.secrets, issuer: app.keys.issuer, cache },
  findPermissionsOf: (scope) => scope.split(' ').map((name) => `${name}:use`),
})

/** A user with an account, and one to which it does not belong. */
let user: UserId
let account: AccountId
let foreign: AccountId
beforeEach(async () => {
  app.clock.set(MADE_AT.getTime())
  ;[user, account, foreign] = [await rows.user(), await rows.account(), await rows.account()]
  await rows.member(account, user, ['account-developer'])
})

const hashOf = (token: string) => createHash('sha256').update(token).digest()
const tokenOf = (prefix: string) => `${prefix}${randomBytes(32).toString('base64url')}`
const keyOf = (token: string) => `h:${hashOf(token).toString('base64')}`

/** The caller of a token, as it is kept from now on. */
async function find(token: string, key = token) {
  const caller = await authenticate(`Bearer ${token}`)
  const kept = cache.find(key, new Date(app.clock.now()))
  expect(kept?.caller).toEqual(caller)
  return kept
}

const signFor = (sessionId: SessionId, seconds = 3_600) =>
  signSessionToken(app.keys, {
    ...{ userId: user, sessionId, accountId: null, tokenId: newId(), amr: [], acr: null, authTime: MADE_AT },
    ...{ issuedAt: MADE_AT, expiresAt: madeAfter(seconds * 1_000) },
  })
/** A session that lasts for a day unless told otherwise; returns its token. */
const openSession = async (more: object = {}, seconds?: number) => {
  const id = await rows.session(user, { expires_at: madeAfter(DAY_MS), ...more })
  return { id, token: signFor(id, seconds) }
}
const addKey = async (more: object = {}, token = tokenOf('sbx_')) => {
  const { id } = await rows.apiKey(user, { token_hash: hashOf(token), ...more })
  return { id, token }
}
/** Makes the account one that sessions reach by its connection alone; the user has another one. */
async function closeAccount(): Promise<ConnectionId> {
  const domain = `${newId()}.test`
  await rows.member(foreign, user)
  await rows.set('user', user, { email: `ada@${domain}`, email_verified_at: MADE_AT })
  return rows.enforcedConnection(account, domain)
}

describe('a session', () => {
  test('acts for its user, in its current account while the user belongs to it', async () => {
    const { id, token } = await openSession({ account })
    expect(await find(token)).toMatchObject({
      caller: {
        ...{ userId: user, sessionId: id, apiKeyId: null, clientId: null, accountId: account, ceiling: null },
        ...{ accounts: [account], keyAccount: null, expiresAt: madeAfter(3_600_000) },
        proof: { hasFactor: false, isMultiFactor: false, provenAt: MADE_AT },
      },
      ...{ userId: user, tokenChanges: [`s:${id}`] },
    })
    const left = await openSession({ account: foreign })
    expect((await find(left.token))?.caller).toMatchObject({ accountId: null, accounts: [account] })
    expect((await find(left.token))?.caller).not.toHaveProperty('narrowing')
  })

  test('of an app acts within its scopes', async () => {
    const { token } = await openSession({ client_id: 'app', scope: 'a b' })
    expect((await find(token))?.caller).toMatchObject({ clientId: 'app', ceiling: ['a:use', 'b:use'] })
  })

  test('is kept until its use is written again, or its token or itself ends', async () => {
    const endOf = async (token: string) => (await find(token))?.expiresAt
    expect(await endOf((await openSession()).token)).toEqual(madeAfter(SESSION_MS))
    expect(await endOf((await openSession({ last_used_at: madeAfter(-1) })).token)).toEqual(madeAfter(SESSION_MS - 1))
    expect(await endOf((await openSession({ last_used_at: madeAfter(-SESSION_MS) })).token)).toEqual(
      madeAfter(SESSION_MS),
    )
    expect(await endOf((await openSession({}, 60)).token)).toEqual(madeAfter(60_000))
    expect(await endOf((await openSession({ expires_at: madeAfter(30_000) })).token)).toEqual(madeAfter(30_000))
  })

  test('lacks an account that its connection has not proven, and loses it with the proof', async () => {
    const connection = await closeAccount()
    const enterPath = `/auth/organization/enter?connection=${connection}`
    const lacking = (await find((await openSession()).token))?.caller
    expect(lacking?.narrowing).toMatchObject({ account, connection, provenUntil: null, enterPath })
    expect(lacking?.narrowing?.lacking).toContain('webhook:*')
    expect([lacking?.accounts, lacking?.expiresAt]).toEqual([[foreign], madeAfter(3_600_000)])
    const { id, token } = await openSession()
    const proof = { session: id, connection, proven_at: MADE_AT, expires_at: madeAfter(40_000) }
    await db.insertInto('connection_proof').values(proof).execute()
    const proven = await find(token)
    expect(proven?.caller.narrowing).toEqual({
      ...{ account, connection, provenUntil: madeAfter(40_000), lacking: [], enterPath },
    })
    expect(proven?.caller.accounts.toSorted()).toEqual([account, foreign].toSorted())
    expect([proven?.caller.expiresAt, proven?.expiresAt]).toEqual([madeAfter(40_000), madeAfter(40_000)])
  })

  test('opens nothing once it is revoked, by a forged token, or by none', async () => {
    const { token } = await openSession({ revoked_at: MADE_AT })
    expect(await find(token)).toBeUndefined()
    expect(await find((await openSession()).token.replace(/.{3}$/, 'AAA'))).toBeUndefined()
    expect(await authenticate(undefined)).toBeUndefined()
    expect(await authenticate('Bearer')).toBeUndefined()
  })

  test('has its use noted once in five minutes', async () => {
    const { id, token } = await openSession()
    const usedAfter = async (ms: number) => {
      app.clock.set(MADE_AT.getTime() + ms)
      await find(token)
      const found = db.selectFrom('session').select('last_used_at').where('document_id', '=', id)
      return (await found.executeTakeFirstOrThrow()).last_used_at.getTime() - MADE_AT.getTime()
    }
    expect(await usedAfter(SESSION_MS - 1)).toBe(0)
    expect(await usedAfter(SESSION_MS)).toBe(SESSION_MS)
    expect(await usedAfter(2 * SESSION_MS - 1)).toBe(SESSION_MS)
  })
})

describe('an API key', () => {
  test('acts for its owner within its patterns, in its account alone where it is bound to one', async () => {
    const { id, token } = await addKey({ permissions: ['webhook:find'] })
    expect(await find(token, keyOf(token))).toMatchObject({
      caller: {
        ...{ userId: user, sessionId: null, apiKeyId: id, clientId: null, accountId: null, ceiling: ['webhook:find'] },
        ...{ accounts: [account], keyAccount: null, proof: null, expiresAt: null },
      },
      ...{ userId: user, tokenChanges: [`k:${id}`] },
    })
    const bound = await addKey({ account: foreign })
    const caller = (await find(bound.token, keyOf(bound.token)))?.caller
    expect(caller).toMatchObject({ keyAccount: foreign, accounts: [], patterns: [] })
  })

  test('is kept until its use is written again or it ends, and its use is noted once a minute', async () => {
    const use = async (more: object) => {
      const { id, token } = await addKey(more)
      const kept = await find(token, keyOf(token))
      const found = db.selectFrom('api_key').select('last_used_at').where('document_id', '=', id)
      return [kept?.expiresAt, (await found.executeTakeFirstOrThrow()).last_used_at]
    }
    const recent = madeAfter(1 - KEY_MS)
    expect(await use({})).toEqual([madeAfter(KEY_MS), MADE_AT])
    expect(await use({ last_used_at: recent })).toEqual([madeAfter(1), recent])
    expect(await use({ last_used_at: madeAfter(-KEY_MS) })).toEqual([madeAfter(KEY_MS), MADE_AT])
    expect(await use({ expires_at: madeAfter(30_000) })).toEqual([madeAfter(30_000), MADE_AT])
    expect(await use({ expires_at: madeAfter(DAY_MS) })).toEqual([madeAfter(KEY_MS), MADE_AT])
  })

  test('lacks an account that sessions must prove, unless it is bound to it', async () => {
    const connection = await closeAccount()
    const narrowingOf = async (more: object) => {
      const { token } = await addKey(more)
      return (await find(token, keyOf(token)))?.caller.narrowing
    }
    expect(await narrowingOf({})).toMatchObject({ account, connection, provenUntil: null, enterPath: null })
    expect(await narrowingOf({ account })).toBeUndefined()
  })

  test('opens nothing in another form, or once it is revoked', async () => {
    for (const text of ['sbx_short', `${tokenOf('sbx_')}A`]) {
      await addKey({}, text)
      expect(await find(text, keyOf(text))).toBeUndefined()
    }
    const { token } = await addKey({ revoked_at: MADE_AT })
    expect(await find(token, keyOf(token))).toBeUndefined()
  })
})

describe('a portal session', () => {
  const openPortal = async (token: string, more: object = {}) => {
    const key = await addKey({ permissions: ['webhook:*', 'user:find-all'] })
    const { id } = await rows.portalSession(account, key.id, { token_hash: hashOf(token), ...more })
    return { id, key: key.id }
  }

  test('acts for the owner of its key in its account, within its role and the key, until it ends', async () => {
    const token = tokenOf('sbp_')
    const { id, key } = await openPortal(token, { external_user: 'jo' })
    const found = await find(token, keyOf(token))
    expect(found).toMatchObject({
      caller: {
        ...{ userId: user, sessionId: null, apiKeyId: key, clientId: null, accountId: null, keyAccount: account },
        ...{ accounts: [account], patterns: [], portal: { id, externalUser: 'jo' }, proof: null },
        expiresAt: madeAfter(60_000),
      },
      ...{ userId: user, tokenChanges: [`v:${id}`, `k:${key}`], expiresAt: madeAfter(60_000) },
    })
    expect(found?.caller.ceiling).toContain('webhook:*')
    expect(found?.caller.ceiling).not.toContain('user:find-all')
  })

  test('opens nothing in another form, or once it has ended', async () => {
    await openPortal('sbp_short')
    expect(await find('sbp_short', keyOf('sbp_short'))).toBeUndefined()
    const token = tokenOf('sbp_')
    await openPortal(token, { expires_at: MADE_AT })
    expect(await find(token, keyOf(token))).toBeUndefined()
  })
})
