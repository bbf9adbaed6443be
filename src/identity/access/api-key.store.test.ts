import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, SessionId, UserId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  endAccountApiKeys,
  endUserApiKeys,
  findApiKey,
  findApiKeyWithHoldings,
  insertApiKey,
  lockKeyMaker,
  revokeApiKeyRow,
  selectApiKeys,
} from './api-key.store.ts'

let user: UserId
let other: UserId
let account: AccountId
const database = await openForFile(createTestDatabase())
const { db } = database
const rows = buildIdentityRows(db)
beforeEach(async () => {
  ;[user, other, account] = [await rows.user(), await rows.user(), await rows.account()]
})

const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)
const list = async (owner: UserId | 'all') => (await selectApiKeys(db, owner).execute()).map(({ id }) => id)
const areLive = (...keys: { id: string }[]) =>
  Promise.all(keys.map(async ({ id }) => (await findApiKey(db, { id })) !== undefined))

describe('a key', () => {
  test('is found by its id until it is revoked, beside others', async () => {
    const [first, second] = [await rows.apiKey(user), await rows.apiKey(other, { account, expires_at: madeAfter(9) })]
    expect(await findApiKey(db, { id: first.id })).toMatchObject({
      id: first.id,
      userId: user,
      account: null,
      expiresAt: null,
    })
    expect(await findApiKeyWithHoldings(db, { id: second.id })).toMatchObject({
      ...{ id: second.id, userId: other, account, expiresAt: madeAfter(9), patterns: ['user:find-all'] },
      holdings: { patterns: [] },
    })
    await rows.set('api_key', first.id, { revoked_at: MADE_AT })
    expect([await findApiKey(db, { id: first.id }), await findApiKeyWithHoldings(db, { id: first.id })]).toEqual([
      undefined,
      undefined,
    ])
    expect(await areLive(second)).toEqual([true])
  })

  test('is kept as it is made', async () => {
    const made = await write((tx) =>
      insertApiKey(tx, {
        ...{ id: newId(), userId: user, account, name: 'Mine', hint: 'sbx_abcd…', patterns: ['user:create'] },
        ...{ createdWith: newId(), expiresAt: madeAfter(9), tokenHash: randomBytes(32), now: MADE_AT },
      } as Parameters<typeof insertApiKey>[1]),
    )
    expect(await findApiKey(db, { id: made.id })).toEqual(made)
  })

  test('is listed with those of its user, or with all, until it is revoked', async () => {
    const [first, second, gone] = [await rows.apiKey(user), await rows.apiKey(other), await rows.apiKey(user)]
    await rows.set('api_key', gone.id, { revoked_at: MADE_AT })
    expect(await list(user)).toEqual([first.id])
    expect(await list('all')).toEqual(expect.arrayContaining([first.id, second.id]))
    expect(await list('all')).not.toContain(gone.id)
  })

  test('is revoked alone, once, and by its owner or for all', async () => {
    const [key, beside] = [await rows.apiKey(user), await rows.apiKey(user)]
    const revoke = (owner: UserId | 'all', now = madeAfter(1)) => revokeApiKeyRow(db, key.id, { owner, now })
    expect(await revoke(other)).toBeUndefined()
    expect(await areLive(key)).toEqual([true])
    expect(await revoke(user)).toMatchObject({ id: key.id, revokedAt: madeAfter(1), updatedAt: madeAfter(1) })
    expect(await revoke('all')).toBeUndefined()
    expect(await areLive(key, beside)).toEqual([false, true])
    expect(await revokeApiKeyRow(db, beside.id, { owner: 'all', now: MADE_AT })).toMatchObject({ id: beside.id })
  })

  test('ends with the access of its user, and keeps the time of an earlier end', async () => {
    const [first, second, foreign] = [await rows.apiKey(user), await rows.apiKey(user), await rows.apiKey(other)]
    await rows.set('api_key', second.id, { revoked_at: MADE_AT })
    await write((tx) => endUserApiKeys(tx, { userId: user, now: madeAfter(5) }))
    expect(await areLive(first, second, foreign)).toEqual([false, false, true])
    const { rows: ends } = await database.pool.query(
      'select revoked_at, updated_at from api_key where "user" = $1 order by revoked_at',
      [user],
    )
    expect(ends).toEqual([
      { revoked_at: MADE_AT, updated_at: MADE_AT },
      { revoked_at: madeAfter(5), updated_at: madeAfter(5) },
    ])
  })

  test('that is bound to an account ends with it, of one user or of all', async () => {
    const keys = [
      await rows.apiKey(user, { account }),
      await rows.apiKey(other, { account }),
      await rows.apiKey(user),
      await rows.apiKey(user, { account: await rows.account() }),
    ]
    await write((tx) => endAccountApiKeys(tx, { account, userId: user, now: madeAfter(1) }))
    expect(await areLive(...keys)).toEqual([false, true, true, true])
    await write((tx) => endAccountApiKeys(tx, { account, userId: 'all', now: madeAfter(2) }))
    expect(await areLive(...keys)).toEqual([false, false, true, true])
    const { rows: ends } = await database.pool.query('select revoked_at from api_key where account = $1 order by 1', [
      account,
    ])
    expect(ends.map((row) => row.revoked_at)).toEqual([madeAfter(1), madeAfter(2)])
  })
})

describe('who makes a key', () => {
  const facts = (more: Partial<Parameters<typeof lockKeyMaker>[1]> = {}) =>
    write((tx) =>
      lockKeyMaker(tx, { userId: user, sessionId: null, apiKeyId: null, account: null, now: MADE_AT, ...more }),
    )

  test('holds a token that is live, of its own, with the end of that', async () => {
    const sessionId = await rows.session(user)
    expect(await facts({ sessionId })).toMatchObject({ isTokenLive: true, tokenExpiresAt: null, liveKeys: 0 })
    expect(await facts({ sessionId, now: madeAfter(60_000) })).toMatchObject({ isTokenLive: false })
    await rows.set('session', sessionId, { revoked_at: MADE_AT })
    expect(await facts({ sessionId })).toMatchObject({ isTokenLive: false })
    const { id: apiKeyId } = await rows.apiKey(user, { expires_at: madeAfter(9) })
    expect(await facts({ apiKeyId })).toMatchObject({ isTokenLive: true, tokenExpiresAt: madeAfter(9), liveKeys: 1 })
    expect(await facts({ apiKeyId, now: madeAfter(9) })).toMatchObject({ isTokenLive: false, liveKeys: 0 })
    expect(await facts({ userId: newId<UserId>(), sessionId: newId<SessionId>() })).toMatchObject({
      ...{ isTokenLive: false, liveKeys: 0 },
    })
  })

  test('has a user that is active, whose other keys count while they are live', async () => {
    const sessionId = await rows.session(user)
    await rows.apiKey(user, { expires_at: madeAfter(1) })
    await rows.apiKey(user, { expires_at: MADE_AT })
    await rows.apiKey(user, { revoked_at: MADE_AT })
    await rows.apiKey(other)
    expect(await facts({ sessionId })).toMatchObject({ isTokenLive: true, liveKeys: 1 })
    await rows.set('user', user, { is_actived: false })
    expect(await facts({ sessionId })).toMatchObject({ isTokenLive: false })
  })

  test('names an account that is there, or none', async () => {
    expect([await facts(), await facts({ account })]).toMatchObject([{ hasAccount: true }, { hasAccount: true }])
    await rows.set('account', account, { deleted_at: MADE_AT })
    expect(await facts({ account })).toMatchObject({ hasAccount: false })
    expect(await facts({ account: newId<AccountId>() })).toMatchObject({ hasAccount: false })
  })
})
