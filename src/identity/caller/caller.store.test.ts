import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, ConnectionId, SessionId, UserId } from '../../base/id.ts'
import {
  findKeyCaller,
  findPortalCaller,
  findSessionCaller,
  findUserCallers,
  touchApiKey,
  touchSession,
} from './caller.store.ts'

let user: UserId
let account: AccountId
/** Which tokens open anything, judged by their statements alone: each beside a token that is as good as it can be. */
const database = await openForFile(createTestDatabase())
const rows = buildIdentityRows(database.db)
beforeEach(async () => {
  ;[user, account] = [await rows.user(), await rows.account()]
  // Each lies beside rows of another user.
  const other = await rows.user()
  await rows.session(other)
  const { id } = await rows.apiKey(other)
  await rows.portalSession(await rows.account(), id)
})

const USER_ENDS: [name: string, columns: object][] = [
  ['is disabled', { is_actived: false }],
  ['is deleted', { deleted_at: MADE_AT }],
]
/** The last instant at which a token is good, and the first at which it is not. */
const EDGE = [madeAfter(59_999), madeAfter(60_000)] as const

describe('a session', () => {
  const find = (sessionId: SessionId, now = MADE_AT, userId = user) =>
    findSessionCaller(database.db, { sessionId, userId, now })

  test('is found with what it carries', async () => {
    const client = { client_id: 'app', scope: 'openid' }
    const session = await rows.session(user, { account, amr: ['pwd', 'mfa'], ...client })
    expect(await find(session)).toMatchObject({
      ...{ userId: user, accountId: account, client: { id: 'app', scope: 'openid' }, lastUsedAt: MADE_AT },
      ...{ expiresAt: madeAfter(60_000), proof: { hasFactor: false, isMultiFactor: true, provenAt: MADE_AT } },
    })
    const plain = await rows.session(user, { amr: ['pwd'] })
    expect(await find(plain)).toMatchObject({ accountId: null, client: null, proof: { isMultiFactor: false } })
  })

  test('opens nothing for another user, unknown, expired, or revoked', async () => {
    const session = await rows.session(user)
    expect(await find(session, EDGE[0])).toBeDefined()
    expect(await find(session, EDGE[1])).toBeUndefined()
    expect(await find(session, MADE_AT, await rows.user())).toBeUndefined()
    expect(await find(newId<SessionId>())).toBeUndefined()
    await rows.set('session', session, { revoked_at: madeAfter(1) })
    expect(await find(session)).toBeUndefined()
  })

  test.each(USER_ENDS)('opens nothing once its user %s', async (_name, columns) => {
    const session = await rows.session(user)
    expect(await find(session)).toBeDefined()
    await rows.set('user', user, columns)
    expect(await find(session)).toBeUndefined()
  })

  test('notes its last use alone, and not one after another', async () => {
    const [session, other] = [await rows.session(user), await rows.session(user)]
    const lastUse = async (id: SessionId) => (await find(id))?.lastUsedAt
    await touchSession(database.db, { id: session, before: madeAfter(-1), now: madeAfter(9) })
    expect(await lastUse(session)).toEqual(MADE_AT)
    await touchSession(database.db, { id: session, before: MADE_AT, now: madeAfter(9) })
    expect([await lastUse(session), await lastUse(other)]).toEqual([madeAfter(9), MADE_AT])
  })
})

test('of users, those who are active are found', async () => {
  const found = async (...users: UserId[]) =>
    (await findUserCallers(database.db, users)).map(({ userId }) => userId).toSorted()
  const other = await rows.user()
  expect(await found(user, other)).toEqual([user, other].toSorted())
  expect(await found(user)).toEqual([user])
  for (const [, columns] of USER_ENDS) expect(await found(user, await rows.user(columns))).toEqual([user])
})

describe('an API key', () => {
  const find = (tokenHash: Buffer, now = MADE_AT) => findKeyCaller(database.db, { tokenHash, now })

  test('is found with what it carries', async () => {
    const { id, tokenHash } = await rows.apiKey(user, { account, last_used_at: MADE_AT, expires_at: madeAfter(60_000) })
    expect(await find(tokenHash)).toMatchObject({
      ...{ userId: user, apiKeyId: id, keyPatterns: ['user:find-all'], keyAccount: account, lastUsedAt: MADE_AT },
      ...{ expiresAt: madeAfter(60_000) },
    })
    const plain = await rows.apiKey(user)
    expect(await find(plain.tokenHash)).toMatchObject({ apiKeyId: plain.id, keyAccount: null, expiresAt: null })
  })

  test('opens nothing when it is unknown, expired or revoked', async () => {
    const { id, tokenHash } = await rows.apiKey(user, { expires_at: madeAfter(60_000) })
    expect(await find(tokenHash, EDGE[0])).toBeDefined()
    expect(await find(tokenHash, EDGE[1])).toBeUndefined()
    expect(await find(Buffer.alloc(32))).toBeUndefined()
    await rows.set('api_key', id, { revoked_at: MADE_AT })
    expect(await find(tokenHash)).toBeUndefined()
  })

  test.each(USER_ENDS)('opens nothing once its user %s', async (_name, columns) => {
    const { tokenHash } = await rows.apiKey(user)
    expect(await find(tokenHash)).toBeDefined()
    await rows.set('user', user, columns)
    expect(await find(tokenHash)).toBeUndefined()
  })

  test('of an account opens nothing once that is deleted', async () => {
    const { tokenHash } = await rows.apiKey(user, { account })
    await rows.set('account', account, { deleted_at: MADE_AT })
    expect(await find(tokenHash)).toBeUndefined()
    expect(await find((await rows.apiKey(user)).tokenHash)).toBeDefined()
  })

  test('notes its last use alone, the first one and not one after another', async () => {
    const [key, other] = [await rows.apiKey(user), await rows.apiKey(user)]
    const lastUses = async () =>
      Promise.all([key, other].map(async ({ tokenHash }) => (await find(tokenHash))?.lastUsedAt))
    await touchApiKey(database.db, { id: key.id, before: madeAfter(-1), now: MADE_AT })
    expect(await lastUses()).toEqual([MADE_AT, null])
    await touchApiKey(database.db, { id: key.id, before: madeAfter(-1), now: madeAfter(9) })
    expect(await lastUses()).toEqual([MADE_AT, null])
    await touchApiKey(database.db, { id: key.id, before: MADE_AT, now: madeAfter(9) })
    expect(await lastUses()).toEqual([madeAfter(9), null])
  })
})

describe('a portal session', () => {
  const find = (tokenHash: Buffer, now = MADE_AT) => findPortalCaller(database.db, { tokenHash, now })
  let key: { id: string; tokenHash: Buffer }
  let portal: Awaited<ReturnType<typeof rows.portalSession>>
  beforeEach(async () => {
    key = await rows.apiKey(user, { expires_at: madeAfter(90_000) })
    portal = await rows.portalSession(account, key.id, { external_user: 'jo' })
  })

  test('is found with what it and its key carry, and ends with the first of both', async () => {
    expect(await find(portal.tokenHash)).toMatchObject({
      ...{ userId: user, account, apiKeyId: key.id, keyPatterns: ['user:find-all'], role: 'account-developer' },
      ...{ portal: { id: portal.id, externalUser: 'jo' }, expiresAt: madeAfter(60_000) },
    })
    await rows.set('api_key', key.id, { expires_at: madeAfter(30_000) })
    expect(await find(portal.tokenHash)).toMatchObject({ expiresAt: madeAfter(30_000) })
    expect(await find(portal.tokenHash, madeAfter(29_999))).toBeDefined()
    expect(await find(portal.tokenHash, madeAfter(30_000))).toBeUndefined()
    await rows.set('api_key', key.id, { expires_at: null })
    expect(await find(portal.tokenHash)).toMatchObject({ expiresAt: madeAfter(60_000) })
  })

  test('opens nothing by its link, when it is unknown, or expired', async () => {
    expect(await find(portal.tokenHash, EDGE[0])).toBeDefined()
    expect(await find(portal.tokenHash, EDGE[1])).toBeUndefined()
    expect(await find(portal.linkHash)).toBeUndefined()
    expect(await find(Buffer.alloc(32))).toBeUndefined()
  })

  test.each<[name: string, end: () => Promise<void>]>([
    ['it is revoked', () => rows.set('portal_session', portal.id, { revoked_at: MADE_AT })],
    ['its key is revoked', () => rows.set('api_key', key.id, { revoked_at: MADE_AT })],
    ['its account is deleted', () => rows.set('account', account, { deleted_at: MADE_AT })],
    ...USER_ENDS.map(([name, columns]): [string, () => Promise<void>] => {
      return [`the owner of its key ${name}`, () => rows.set('user', user, columns)]
    }),
    ['its key is bound to another account', async () => rows.set('api_key', key.id, { account: await rows.account() })],
  ])('opens nothing once %s', async (_name, end) => {
    await rows.set('api_key', key.id, { account })
    expect(await find(portal.tokenHash)).toBeDefined()
    await end()
    expect(await find(portal.tokenHash)).toBeUndefined()
  })
})

describe('a role of a membership', () => {
  /** Gives the user two roles in the account: one of them needs a second factor. */
  const addRoles = async () => {
    for (const requires_second_factor of [false, true]) {
      const [role, name] = [newId(), newId()]
      const times = { created_at: MADE_AT, updated_at: MADE_AT }
      const row = { document_id: role, name, is_account_scoped: true, requires_second_factor, ...times }
      await database.db.insertInto('role').values(row).execute()
      const pattern = requires_second_factor ? 'careful:*' : 'plain:*'
      await database.db.insertInto('role_permission').values({ role, pattern }).execute()
      names.push(name)
    }
    await rows.member(account, user, names)
  }
  const names: string[] = []
  beforeEach(async () => {
    names.length = 0
    await addRoles()
  })
  const find = async (more: object, now = MADE_AT) => {
    const sessionId = await rows.session(user, more)
    return (await findSessionCaller(database.db, { sessionId, userId: user, now }))!
  }
  const findKey = async (more: object = {}) =>
    (await findKeyCaller(database.db, { tokenHash: (await rows.apiKey(user, more)).tokenHash, now: MADE_AT }))!
  const patternsOf = ({ membershipPatterns }: { membershipPatterns: readonly { patterns: readonly string[] }[] }) =>
    membershipPatterns.flatMap(({ patterns }) => patterns).toSorted()

  test('that needs a second factor holds in a session with one, and for a key', async () => {
    expect(patternsOf(await find({ amr: ['pwd'] }))).toEqual(['plain:*'])
    expect(patternsOf(await find({ amr: ['pwd', 'mfa'] }))).toEqual(['careful:*', 'plain:*'])
    expect(patternsOf(await findKey())).toEqual(['careful:*', 'plain:*'])
  })

  describe('in an account that a connection must prove', () => {
    let [connection, other] = [newId<ConnectionId>(), newId<AccountId>()]
    beforeEach(async () => {
      const domain = `${newId()}.test`
      await rows.set('user', user, { email: `ada@${domain}`, email_verified_at: MADE_AT })
      ;[connection, other] = [await rows.enforcedConnection(account, domain), await rows.account()]
    })

    test('holds while the user has no other account', async () => {
      const only = await find({ amr: ['pwd'] })
      expect([only.narrowed, only.accounts, patternsOf(only)]).toEqual([null, [account], ['plain:*']])
    })

    test('is lacked by a session without a proof, and by a key of no account', async () => {
      await rows.member(other, user)
      const lacked = { account, connection, provenUntil: null }
      for (const { amr, patterns } of [
        { amr: ['pwd'], patterns: ['plain:*'] },
        { amr: ['pwd', 'mfa'], patterns: ['careful:*', 'plain:*'] },
      ]) {
        const found = await find({ amr })
        expect([found.narrowed, found.accounts, patternsOf(found)]).toEqual([{ ...lacked, patterns }, [other], []])
      }
      const key = await findKey()
      expect([key.narrowed, key.accounts, patternsOf(key)]).toEqual([
        ...[{ ...lacked, patterns: ['careful:*', 'plain:*'] }, [other], []],
      ])
      const bound = await findKey({ account })
      expect([bound.narrowed, bound.accounts.toSorted()]).toEqual([null, [account, other].toSorted()])
      expect((await findKey({ account: other })).narrowed).toMatchObject(lacked)
    })

    test('holds in a session until its proof ends', async () => {
      await rows.member(other, user)
      const sessionId = await rows.session(user, { amr: ['pwd'] })
      const proof = { session: sessionId, connection, proven_at: MADE_AT, expires_at: madeAfter(10) }
      await database.db.insertInto('connection_proof').values(proof).execute()
      const find = async (ms: number) =>
        (await findSessionCaller(database.db, { sessionId, userId: user, now: madeAfter(ms) }))!
      const proven = await find(9)
      expect(proven.narrowed).toEqual({ account, connection, provenUntil: madeAfter(10), patterns: [] })
      expect([proven.accounts.toSorted(), patternsOf(proven)]).toEqual([[account, other].toSorted(), ['plain:*']])
      expect((await find(10)).narrowed).toMatchObject({ provenUntil: null, patterns: ['plain:*'] })
    })
  })
})
