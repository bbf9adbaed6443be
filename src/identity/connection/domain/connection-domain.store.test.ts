import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../../test/harness/database/identity-rows.ts'
import { untilWaiting } from '../../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { AccountId, ConnectionId } from '../../../base/id.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import {
  type ConnectionDomainId,
  countDomainsOf,
  deleteConnectionDomainRow,
  findConnectionDomain,
  findConnectionOfDomain,
  insertConnectionDomain,
  markVerified,
  noteCheck,
  selectConnectionDomains,
} from './connection-domain.store.ts'

const [EXPIRES_AT, LATER] = [madeAfter(60_000), madeAfter(120_000)]

/** A connection of an account, and one of another account. */
let account: AccountId
let foreign: AccountId
let one: ConnectionId
let two: ConnectionId
const { db } = await openForFile(createTestDatabase())
beforeEach(async () => {
  await db.deleteFrom('connection').execute()
  const rows = buildIdentityRows(db)
  ;[account, foreign] = [await rows.account(), await rows.account()]
  ;[one, two] = [await connect(account), await connect(foreign)]
})

async function connect(owner: AccountId): Promise<ConnectionId> {
  const [id, times] = [newId<ConnectionId>(), { created_at: MADE_AT, updated_at: MADE_AT }]
  const oidc = {
    kind: 'oidc',
    issuer: 'https://a.example',
    client_id: 'a',
    scopes: ['openid'],
    is_email_trusted: false,
  }
  const row = { document_id: id, account: owner, name: `of ${owner}`, secret_encrypted: 'sealed', session_hours: 24 }
  await db
    .insertInto('connection')
    .values({ ...row, ...oidc, ...times } as never)
    .execute()
  return id
}
const ownerOf = (connection: ConnectionId) => (connection === one ? account : foreign)
const claim = (connection: ConnectionId, domain: string, { now = MADE_AT, token = 'token' } = {}) =>
  insertConnectionDomain(db, {
    ...{ id: newId<ConnectionDomainId>(), connection, account: ownerOf(connection), domain, token },
    ...{ expiresAt: new Date(now.getTime() + 60_000), now },
  })
async function prove(connection: ConnectionId, domain: string) {
  const { id } = (await claim(connection, domain))!
  await markVerified(db, { id, by: 'dns', now: madeAfter(1) })
  return id
}
const find = (id: string) => findConnectionDomain(db, id)

describe('a claim of a domain', () => {
  test('is kept with what proves it, once for a connection, until it expires', async () => {
    const first = (await claim(one, 'corp.example'))!
    expect(first).toMatchObject({
      ...{ connection: one, account, domain: 'corp.example', token: 'token', expiresAt: EXPIRES_AT },
      ...{ verifiedAt: null, verifiedBy: null, checkedAt: null, createdAt: MADE_AT, updatedAt: MADE_AT },
    })
    const other = (await claim(two, 'corp.example'))!
    expect(await claim(one, 'corp.example', { now: madeAfter(59_999) })).toBeUndefined()
    await noteCheck(db, { id: first.id, before: MADE_AT, now: madeAfter(1) })
    const again = (await claim(one, 'corp.example', { now: EXPIRES_AT, token: 'another' }))!
    expect(again).toMatchObject({
      ...{ token: 'another', expiresAt: LATER, checkedAt: null, createdAt: EXPIRES_AT, updatedAt: EXPIRES_AT },
    })
    expect(again.id).not.toBe(first.id)
    expect(await find(first.id)).toBeUndefined()
    expect(await find(other.id)).toEqual(other)
  })

  test('that is proven is replaced by none', async () => {
    const id = await prove(one, 'corp.example')
    expect(await claim(one, 'corp.example', { now: LATER })).toBeUndefined()
    expect(await find(id)).toMatchObject({ verifiedAt: madeAfter(1), verifiedBy: 'dns', expiresAt: null })
  })

  test('is looked up again once enough time has passed, and not beside another look', async () => {
    const [{ id }, other] = [(await claim(one, 'corp.example'))!, (await claim(two, 'corp.example'))!]
    const look = (afterMs: number) =>
      noteCheck(db, { id, before: madeAfter(afterMs - 10_000), now: madeAfter(afterMs) })
    expect([await look(0), await look(9_999), await look(10_000), await look(10_000)]).toEqual([
      ...[true, false, true, false],
    ])
    expect((await find(id))?.checkedAt).toEqual(madeAfter(10_000))
    expect((await find(other.id))?.checkedAt).toBeNull()
  })

  test('is read without its lock beside who holds it, and with its lock behind', async () => {
    const { id } = (await claim(one, 'corp.example'))!
    const { read } = await inTransaction(db, async (tx) => {
      expect(await findConnectionDomain(tx, id, { lock: true })).toMatchObject({ id })
      expect(await find(id)).toMatchObject({ id })
      const read = inTransaction(db, (other) => findConnectionDomain(other, id, { lock: true }))
      await untilWaiting(db, 1)
      await inTransaction(tx, (own) => deleteConnectionDomainRow(own, id))
      return { read }
    })
    expect(await read).toBeUndefined()
  })
})

describe('the domains of a connection', () => {
  test('are listed and counted for it alone, and listed for its account alone', async () => {
    const ids = [(await claim(one, 'a.example'))!.id, await prove(one, 'b.example')]
    await claim(two, 'c.example')
    const list = async (owner: AccountId) =>
      (await selectConnectionDomains(db, { account: owner, connection: one }).execute()).map(({ id }) => id)
    expect(new Set(await list(account))).toEqual(new Set(ids))
    expect(await list(foreign)).toEqual([])
    const count = (connection: string) => inTransaction(db, (tx) => countDomainsOf(tx, connection))
    expect([await count(one), await count(two), await count(newId())]).toEqual([2, 1, undefined])
  })

  test('are removed one by one', async () => {
    const [gone, kept] = [(await claim(one, 'a.example'))!, (await claim(one, 'b.example'))!]
    await inTransaction(db, (tx) => deleteConnectionDomainRow(tx, gone.id))
    expect([await find(gone.id), await find(kept.id)]).toEqual([undefined, kept])
  })
})

describe('an address', () => {
  test('is of the connection that has proven its domain, while it is enabled and its account lives', async () => {
    await claim(two, 'corp.example')
    expect(await findConnectionOfDomain(db, 'corp.example')).toBeUndefined()
    await prove(one, 'corp.example')
    await prove(two, 'other.example')
    const found = { connection: one, name: `of ${account}`, isEnforced: false }
    expect(await findConnectionOfDomain(db, 'corp.example')).toEqual(found)
    expect(await findConnectionOfDomain(db, 'other.example')).toMatchObject({ connection: two })
    expect(await findConnectionOfDomain(db, 'a.example')).toBeUndefined()
    await db.updateTable('connection').set({ is_enforced: true }).where('document_id', '=', one).execute()
    expect(await findConnectionOfDomain(db, 'corp.example')).toEqual({ ...found, isEnforced: true })
    await db.updateTable('connection').set({ is_enabled: false }).where('document_id', '=', one).execute()
    expect(await findConnectionOfDomain(db, 'corp.example')).toBeUndefined()
    await db.updateTable('connection').set({ is_enabled: true }).where('document_id', '=', one).execute()
    await buildIdentityRows(db).set('account', account, { deleted_at: MADE_AT })
    expect(await findConnectionOfDomain(db, 'corp.example')).toBeUndefined()
  })
})
