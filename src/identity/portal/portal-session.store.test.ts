import { createHash, randomBytes } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, UserId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  countLivingSessions,
  deleteEndedPortalSessions,
  endPortalSessionRow,
  insertPortalSession,
  lockByLink,
  lockByToken,
  openPortalSessionRow,
  revokePortalSessionRow,
  selectPortalSessions,
} from './portal-session.store.ts'
import { leavePortalSession } from './portal-session.ts'

let user: UserId
let account: AccountId
let other: AccountId
let key: { id: string }
const database = await openForFile(createTestDatabase())
const { db } = database
const rows = buildIdentityRows(db)
beforeEach(async () => {
  await database.pool.query('delete from portal_session')
  ;[user, account, other] = [await rows.user(), await rows.account(), await rows.account()]
  key = await rows.apiKey(user)
})

const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)
type Row = Parameters<typeof insertPortalSession>[1]

/** A session whose link was not opened. */
async function make(of = account, more: Partial<Row> = {}) {
  const linkHash = randomBytes(32)
  const row = {
    ...{ id: newId(), account: of, apiKeyId: key.id, role: 'account-developer', externalUser: null, returnUrl: null },
    ...{ lifetimeSeconds: 60, expiresAt: madeAfter(60_000), linkHash, now: MADE_AT, ...more },
  } as Row
  return { linkHash, made: await write((tx) => insertPortalSession(tx, row)) }
}
const find = (by: 'link' | 'token', hash: Buffer, now = MADE_AT) =>
  write((tx) => (by === 'link' ? lockByLink : lockByToken)(tx, { hash, now }))
const list = async (of: AccountId) => selectPortalSessions(db, of).execute()
const count = (of: string = account, now = MADE_AT) => write((tx) => countLivingSessions(tx, of, now))

test('a session is listed in its account, and found by its link, then by its token', async () => {
  const { made, linkHash } = await make(account, { externalUser: 'jo', returnUrl: 'https://app.test/' })
  const beside = await make(other)
  expect(await list(account)).toEqual([{ ...made, keyRevokedAt: null }])
  const facts = { accountName: `account ${account}`, userId: user, isKeyLive: true, keyExpiresAt: null }
  expect(await find('link', linkHash)).toEqual({ ...made, ...facts })
  const tokenHash = randomBytes(32)
  const opening = { id: made.id, tokenHash, expiresAt: madeAfter(90_000), now: madeAfter(1) }
  await write((tx) => openPortalSessionRow(tx, opening))
  const opened = { ...made, openedAt: madeAfter(1), expiresAt: madeAfter(90_000), updatedAt: madeAfter(1) }
  expect(await find('token', tokenHash)).toEqual({ ...opened, ...facts })
  expect([await find('link', tokenHash), await find('token', linkHash)]).toEqual([undefined, undefined])
  expect(await find('link', beside.linkHash)).toMatchObject({ id: beside.made.id, openedAt: null })
  await write((tx) => endPortalSessionRow(tx, { id: made.id, now: madeAfter(2) }))
  expect(await find('token', tokenHash)).toMatchObject({ revokedAt: madeAfter(2), updatedAt: madeAfter(2) })
  expect(await find('link', beside.linkHash)).toMatchObject({ revokedAt: null })
})

test.each<[name: string, columns: object, table: 'user' | 'account' | 'api_key']>([
  ['its key is revoked', { revoked_at: MADE_AT }, 'api_key'],
  ['its key has expired', { expires_at: MADE_AT }, 'api_key'],
  ['its account is deleted', { deleted_at: MADE_AT }, 'account'],
  ['the owner of its key is disabled', { is_actived: false }, 'user'],
  ['the owner of its key is deleted', { deleted_at: MADE_AT }, 'user'],
])('a session is of no live key once %s', async (_name, columns, table) => {
  const { linkHash } = await make()
  await rows.set('api_key', key.id, { expires_at: madeAfter(1) })
  expect(await find('link', linkHash)).toMatchObject({ isKeyLive: true, keyExpiresAt: madeAfter(1) })
  await rows.set(table, { user, account, api_key: key.id }[table], columns)
  expect(await find('link', linkHash)).toMatchObject({ isKeyLive: false })
})

test('a session is revoked in its account alone, once, and not after its end', async () => {
  const [{ made, linkHash }, beside] = [await make(), await make()]
  const revoke = (of: string, now = madeAfter(1)) => revokePortalSessionRow(db, { id: made.id, account: of, now })
  expect([await revoke(other), await revoke(account, madeAfter(60_000))]).toEqual([undefined, undefined])
  expect(await revoke(account)).toEqual({ ...made, revokedAt: madeAfter(1), updatedAt: madeAfter(1) })
  expect(await revoke(account)).toBeUndefined()
  expect(await find('link', linkHash)).toMatchObject({ revokedAt: madeAfter(1) })
  expect(await find('link', beside.linkHash)).toMatchObject({ revokedAt: null })
})

test('an account counts its sessions that have not ended', async () => {
  const [first, second] = [await make(), await make(), await make(other)]
  expect([await count(), await count(other), await count(newId())]).toEqual([2, 1, undefined])
  expect([await count(account, madeAfter(59_999)), await count(account, madeAfter(60_000))]).toEqual([2, 0])
  await revokePortalSessionRow(db, { id: first!.made.id, account, now: MADE_AT })
  expect(await count()).toBe(1)
  await rows.set('account', account, { deleted_at: MADE_AT })
  expect(await count()).toBeUndefined()
  expect(second!.made.account).toBe(account)
})

test('sessions that expired before an instant are deleted in batches, the oldest first', async () => {
  for (const ms of [3, 1, 2]) await make(account, { expiresAt: madeAfter(ms) })
  const ends = async () =>
    (await list(account)).map(({ expiresAt }) => expiresAt.getTime() - MADE_AT.getTime()).toSorted()
  expect(await deleteEndedPortalSessions(db, madeAfter(3), 1)).toBe(1)
  expect(await ends()).toEqual([2, 3])
  expect(await deleteEndedPortalSessions(db, madeAfter(3), 5)).toBe(1)
  expect(await ends()).toEqual([3])
})

test('a session is left once: not after its end, and not after it was revoked', async () => {
  const tokens = ['one', 'two', 'three'] as const
  const ids = await Promise.all(
    tokens.map(async (token) => {
      const { id } = (await make()).made
      const tokenHash = createHash('sha256').update(token).digest()
      await write((tx) => openPortalSessionRow(tx, { id, tokenHash, expiresAt: madeAfter(60_000), now: MADE_AT }))
      return id
    }),
  )
  const leave = async (token: string, now = madeAfter(2)) =>
    (await write((tx) => leavePortalSession(tx, { token, now })))?.id
  expect([await leave('one'), await leave('one')]).toEqual([ids[0], undefined])
  await write((tx) => revokePortalSessionRow(tx, { id: ids[1] as string, account, now: madeAfter(1) }))
  expect([await leave('two'), await leave('three', madeAfter(60_000)), await leave('four')]).toEqual([
    ...[undefined, undefined, undefined],
  ])
})
