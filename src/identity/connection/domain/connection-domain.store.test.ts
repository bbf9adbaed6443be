import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../../test/harness/database/identity-rows.ts'
import { untilWaiting } from '../../../../test/harness/plan/lock-waits.ts'
import type { AccountId, ConnectionId } from '../../../base/id.ts'
import { type Database, inTransaction } from '../../../postgres/statement/database.ts'
import type { RoleId } from '../../access/role.store.ts'
import {
  type ConnectionRecord,
  changeLockedConnection,
  countConnectionsOf,
  deleteConnectionRow,
  findConnection,
  findSignInConnection,
  insertConnection,
  listStaleConnectionSecrets,
  lockConnection,
  replaceConnectionSecret,
  selectConnections,
} from '../connection.store.ts'
import {
  type ConnectionDomainId,
  countDomainsOf,
  deleteConnectionDomainRow,
  findConnectionDomain,
  findConnectionOfDomain,
  insertConnectionDomain,
  lockConnectionDomain,
  markVerified,
  noteCheck,
  selectConnectionDomains,
} from './connection-domain.store.ts'

const [EXPIRES_AT, LATER] = [madeAfter(60_000), madeAfter(120_000)]

let database: TestDatabase
let db: Database
/** A connection of an account, and one of another account. */
let account: AccountId
let foreign: AccountId
let one: ConnectionId
let two: ConnectionId
beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
})
afterAll(() => database[Symbol.asyncDispose]())
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
const find = (id: string) => findConnectionDomain(db, { id })

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
    const look = async (afterMs: number) =>
      (await noteCheck(db, { id, before: madeAfter(afterMs - 10_000), now: madeAfter(afterMs) })) !== undefined
    expect([await look(0), await look(9_999), await look(10_000), await look(10_000)]).toEqual([
      ...[true, false, true, false],
    ])
    expect((await find(id))?.checkedAt).toEqual(madeAfter(10_000))
    expect((await find(other.id))?.checkedAt).toBeNull()
  })

  test('is read without its lock beside who holds it, and with its lock behind', async () => {
    const { id } = (await claim(one, 'corp.example'))!
    const { read } = await inTransaction(db, async (tx) => {
      expect(await lockConnectionDomain(tx, { id })).toMatchObject({ id })
      expect(await find(id)).toMatchObject({ id })
      const read = inTransaction(db, (other) => lockConnectionDomain(other, { id }))
      await untilWaiting(db, 1)
      await inTransaction(tx, (own) => deleteConnectionDomainRow(own, { id }))
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
    await inTransaction(db, (tx) => deleteConnectionDomainRow(tx, { id: gone.id }))
    expect([await find(gone.id), await find(kept.id)]).toEqual([undefined, kept])
  })
})

describe('an address', () => {
  test('is of the connection that has proven its domain, while it is enabled and its account lives', async () => {
    await claim(two, 'corp.example')
    expect(await findConnectionOfDomain(db, { domain: 'corp.example' })).toBeUndefined()
    await prove(one, 'corp.example')
    await prove(two, 'other.example')
    const found = { connection: one, name: `of ${account}`, isEnforced: false }
    expect(await findConnectionOfDomain(db, { domain: 'corp.example' })).toEqual(found)
    expect(await findConnectionOfDomain(db, { domain: 'other.example' })).toMatchObject({ connection: two })
    expect(await findConnectionOfDomain(db, { domain: 'a.example' })).toBeUndefined()
    await db.updateTable('connection').set({ is_enforced: true }).where('document_id', '=', one).execute()
    expect(await findConnectionOfDomain(db, { domain: 'corp.example' })).toEqual({ ...found, isEnforced: true })
    await db.updateTable('connection').set({ is_enabled: false }).where('document_id', '=', one).execute()
    expect(await findConnectionOfDomain(db, { domain: 'corp.example' })).toBeUndefined()
    await db.updateTable('connection').set({ is_enabled: true }).where('document_id', '=', one).execute()
    await buildIdentityRows(db).set('account', account, { deleted_at: MADE_AT })
    expect(await findConnectionOfDomain(db, { domain: 'corp.example' })).toBeUndefined()
  })
})

describe('a connection beside others', () => {
  const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)
  const addRole = async () => {
    const id = newId<RoleId>()
    const insert = 'insert into role (document_id, name, created_at, updated_at) values ($1, $2, $3, $3)'
    await database.pool.query(insert, [id, `role ${id}`, MADE_AT])
    return id
  }
  const add = async (secretEncrypted: string, groupRoles: ConnectionRecord['groupRoles'] = []) => {
    const by = await buildIdentityRows(db).user()
    const saml = {
      ssoUrl: null,
      certificates: null,
      certificatesEndAt: null,
      emailAttribute: null,
      nameAttribute: null,
    }
    const oidc = { issuer: 'https://b.example', clientId: 'b', scopes: ['openid'], groupsClaim: 'groups' }
    const rule = { isEnabled: true, isEnforced: true, isJit: true, defaultRole: null, sessionHours: 9 }
    const row = {
      id: newId<ConnectionId>(),
      account,
      kind: 'oidc',
      name: 'B',
      isEmailTrusted: true,
      groupRoles,
    } as const
    return write((tx) =>
      insertConnection(tx, { ...saml, ...oidc, ...rule, ...row, secretEncrypted, by, now: madeAfter(1) }),
    )
  }

  test('is found as it was written, locked alone, counted with its account, and deleted alone', async () => {
    const made = await add('sealed', [{ group: 'g', role: await addRole() }])
    expect(await findConnection(db, { id: made.id })).toEqual(made)
    expect((await findConnection(db, { id: one }))?.name).toBe(`of ${account}`)
    expect((await selectConnections(db, foreign).execute()).map(({ id }) => id)).toEqual([two])
    await write(async (tx) => {
      expect(await lockConnection(tx, { id: made.id })).toEqual(made)
      const free = 'select document_id from connection where document_id = any($1) for update skip locked'
      expect((await database.pool.query(free, [[made.id, one]])).rows).toEqual([{ document_id: one }])
    })
    const count = (of: AccountId) => write((tx) => countConnectionsOf(tx, of))
    expect([await count(account), await count(foreign), await count(newId())]).toEqual([2, 1, undefined])
    await write((tx) => deleteConnectionRow(tx, { id: made.id }))
    expect([await findConnection(db, { id: made.id }), (await findConnection(db, { id: one }))?.id]).toEqual([
      undefined,
      one,
    ])
  })

  test('signs in while it is enabled and its account is there', async () => {
    const { id, ...made } = await add('of b')
    expect(await findSignInConnection(db, id)).toEqual({ id, ...made, secretEncrypted: 'of b' })
    expect(await findSignInConnection(db, two)).toMatchObject({ id: two, secretEncrypted: 'sealed' })
    await database.pool.query('update connection set is_enabled = false where document_id = $1', [id])
    await buildIdentityRows(db).set('account', foreign, { deleted_at: MADE_AT })
    expect([await findSignInConnection(db, id), await findSignInConnection(db, two)]).toEqual([undefined, undefined])
    expect(await findSignInConnection(db, newId())).toBeUndefined()
  })

  test('gets what a change names, and keeps the rest; its groups give these roles alone', async () => {
    const [kept, taken, given] = [await addRole(), await addRole(), await addRole()]
    const role = (group: string, id: RoleId) => ({ group, role: id })
    const before = await add('sealed', [role('a', kept), role('b', taken)])
    const beside = await add('sealed', [role('b', taken)])
    const by = await buildIdentityRows(db).user()
    const change = (more: Parameters<typeof changeLockedConnection>[2], ms: number) =>
      write((tx) => changeLockedConnection(tx, before, more, { by, now: madeAfter(ms) }))
    const groupRoles = [role('a', kept), role('b', given)]
    const changed = { ...before, name: 'C', isEnabled: false, groupRoles, updatedBy: by, updatedAt: madeAfter(2) }
    expect(await change({ name: 'C', isEnabled: false, groupRoles, secretEncrypted: 'new' }, 2)).toEqual(changed)
    expect(await findConnection(db, { id: before.id })).toEqual(changed)
    await change({ sessionHours: 1 }, 3)
    expect(await findConnection(db, { id: before.id })).toEqual({
      ...changed,
      sessionHours: 1,
      updatedAt: madeAfter(3),
    })
    expect(await findConnection(db, { id: beside.id })).toEqual(beside)
  })

  test('has its secret sealed anew where an older key sealed it, in order', async () => {
    const stale = [(await add('old.1')).id, (await add('old.2')).id].toSorted()
    const fresh = await add('new.1')
    for (const id of [one, two]) await replaceConnectionSecret(db, id, 'new.2')
    const list = async (after: string | null, limit = 9) =>
      (await write((tx) => listStaleConnectionSecrets(tx, { prefix: 'new.', after, limit }))).map(({ id }) => id)
    expect([await list(null), await list(null, 1), await list(stale[0]!)]).toEqual([stale, [stale[0]], [stale[1]]])
    await replaceConnectionSecret(db, stale[0]!, 'new.3')
    expect(await list(null)).toEqual([stale[1]])
    expect(await findSignInConnection(db, fresh.id)).toMatchObject({ secretEncrypted: 'new.1' })
  })
})
