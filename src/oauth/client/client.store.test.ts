import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  type ClientId,
  type ClientRecord,
  findClient,
  findClientWithSecrets,
  insertClient,
  lockClient,
  rotateClientSecret,
  updateClient,
} from './client.store.ts'
import { changeClient, DEFAULT_SETTINGS, deleteClient } from './client.ts'
import { findLogo, keepLogo, removeLogo } from './client-logo.store.ts'
import { findSecrets, type ListedSecret, removeSecret, touchSecret } from './secret-list.store.ts'
import { deleteUnusedClients } from './unused-client.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const at = (ms: number) => new Date(NOW.getTime() + ms)

/** Clients beside each other, the first one with another before it and one behind. */
let clients: ClientRecord[]
const database = await openForFile(createTestDatabase())
const { db } = database

const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)

async function make(more: Partial<ClientRecord> = {}): Promise<ClientRecord> {
  const client: ClientRecord = {
    ...DEFAULT_SETTINGS,
    ...{ id: randomUUID() as string as ClientId, name: 'App', type: 'confidential', logoHash: null },
    ...{ redirectUris: ['https://app.example.com/callback'], registration: 'administrator' },
    ...{ createdAt: NOW, updatedAt: NOW, ...more },
  }
  await write((tx) => insertClient(tx, client, { id: randomUUID(), hash: Buffer.from(client.id) }))
  return client
}

beforeEach(async () => {
  clients = [await make({ name: 'One' }), await make({ name: 'Two' }), await make({ name: 'Three' })]
})

const rotate = (client: ClientId, overlapUntil: Date) =>
  write(async (tx) => {
    await lockClient(tx, client, NOW)
    const secret = { id: randomUUID(), hash: Buffer.alloc(32) }
    await rotateClientSecret(tx, { client, ...secret, overlapUntil, now: NOW })
  })
const endsOf = async (id: string) =>
  (await findClientWithSecrets(db, { id }))?.secrets.map(({ expiresAt }) => expiresAt?.getTime() ?? null)

describe('a client beside others', () => {
  test('is found by its id, alone and with its secrets', async () => {
    for (const client of clients) {
      expect(await findClient(db, { id: client.id })).toEqual(client)
      const secrets = [{ hash: Buffer.from(client.id), expiresAt: null }]
      expect(await findClientWithSecrets(db, { id: client.id })).toEqual({ client, secrets })
      expect(await write((tx) => lockClient(tx, client.id, NOW))).toEqual({ client, liveSecrets: 1 })
    }
  })

  test('is written with all its settings, and no other is', async () => {
    const [first, second, third] = clients as [ClientRecord, ClientRecord, ClientRecord]
    const changed: ClientRecord = {
      ...{ id: second.id, name: 'Renamed', type: 'public', applicationType: 'native', publisher: 'Example Ltd' },
      ...{ redirectUris: ['com.example.app:/callback'], postLogoutRedirectUris: ['https://app.example.com/out'] },
      ...{ grantTypes: ['authorization_code'], scopes: ['openid'], isFirstParty: !second.isFirstParty },
      ...{ backchannelLogoutUri: 'https://app.example.com/end', isDpopBound: !second.isDpopBound },
      ...{ idTokenAlg: second.idTokenAlg === 'ES256' ? 'RS256' : 'ES256', registration: 'dynamic' },
      ...{ logoUri: 'https://app.example.com/logo', logoHash: 'hash', createdAt: at(1), updatedAt: at(2) },
      ...{ authMethod: 'private_key_jwt', jwks: { keys: [] }, jwksUri: null, isParRequired: true },
    }
    await write((tx) => updateClient(tx, changed))
    expect(await findClient(db, { id: second.id })).toEqual(changed)
    for (const other of [first, third]) expect(await findClient(db, { id: other.id })).toEqual(other)
  })

  test('is deleted with its secrets and its logo, and no other is', async () => {
    const [first, second] = clients as [ClientRecord, ClientRecord]
    for (const { id } of clients)
      await write((tx) => keepLogo(tx, { client: id, mediaType: 'image/png', body: Buffer.from(id) }))
    await write((tx) => deleteClient(tx, second.id, NOW))
    expect([await findClient(db, { id: second.id }), await findClientWithSecrets(db, { id: second.id })]).toEqual([
      undefined,
      undefined,
    ])
    expect(await write((tx) => lockClient(tx, second.id, NOW))).toBeUndefined()
    const count = 'select count(*)::int as n from oauth_client_secret where client = $1'
    const countOf = async (id: string) => (await database.pool.query(count, [id])).rows[0].n
    expect([await countOf(first.id), await countOf(second.id)]).toEqual([1, 0])
    expect([(await findLogo(db, { client: first.id }))?.mediaType, await findLogo(db, { client: second.id })]).toEqual([
      'image/png',
      undefined,
    ])
    expect(await findClient(db, { id: first.id })).toEqual(first)
  })

  test('has a logo of its own, which another one replaces', async () => {
    const [kept, deleted] = clients as [ClientRecord, ClientRecord]
    const [first, second] = ['image/png', 'image/gif'].map((mediaType) => ({ mediaType, body: Buffer.from(mediaType) }))
    for (const { id } of [kept, deleted]) await write((tx) => keepLogo(tx, { client: id, ...first! }))
    await write((tx) => keepLogo(tx, { client: kept.id, ...second! }))
    expect([await findLogo(db, { client: kept.id }), await findLogo(db, { client: deleted.id })]).toMatchObject([
      second,
      first,
    ])
    await write((tx) => removeLogo(tx, { client: kept.id }))
    expect([await findLogo(db, { client: kept.id }), await findLogo(db, { client: deleted.id })]).toMatchObject([
      undefined,
      first,
    ])
  })

  test('has the hash of its logo while it has one, and a change of something else leaves both', async () => {
    const [{ id }] = clients as [ClientRecord]
    const holdings = { patterns: [], accountPatterns: [], membershipPatterns: [], accounts: [], ceiling: undefined }
    const caller = holdings as unknown as Parameters<typeof changeClient>[2]['caller']
    const change = (settings: object, body?: string) => {
      const logo = body === undefined ? undefined : { mediaType: 'image/png', body: Buffer.from(body), hash: body }
      return write((tx) => changeClient(tx, id, { settings, logo, caller, now: at(5) }))
    }
    const logoUri = 'https://app.example.com/logo.png'
    const stateOf = async () => [
      (await findClient(db, { id }))?.logoHash,
      (await findLogo(db, { client: id }))?.body.toString(),
    ]
    expect(await change({ logoUri }, 'one')).toMatchObject({ isChanged: true, row: { logoHash: 'one', logoUri } })
    expect(await stateOf()).toEqual(['one', 'one'])
    await change({ name: 'Renamed' })
    expect(await stateOf()).toEqual(['one', 'one'])
    // The same address, with another image behind it.
    expect(await change({ logoUri }, 'two')).toMatchObject({ isChanged: true })
    expect(await stateOf()).toEqual(['two', 'two'])
    expect(await change({ logoUri }, 'two')).toMatchObject({ isChanged: false })
    await change({ logoUri: null })
    expect(await stateOf()).toEqual([null, undefined])
  })
})

describe('the secrets of a client', () => {
  test('end at the overlap, and none later than it did', async () => {
    const [first, second] = clients as [ClientRecord, ClientRecord]
    await rotate(first.id, at(60_000))
    await rotate(first.id, at(3_600_000))
    expect((await endsOf(first.id))?.toSorted()).toEqual(
      [at(60_000).getTime(), at(3_600_000).getTime(), null].toSorted(),
    )
    await rotate(first.id, at(30_000))
    expect((await endsOf(first.id))?.toSorted()).toEqual([...Array(3).fill(at(30_000).getTime()), null].toSorted())
    expect(await endsOf(second.id)).toEqual([null])
  })

  test('are listed until they end, the newest first, each used and removed alone, of a client that is not deleted', async () => {
    const [client, beside] = clients as [ClientRecord, ClientRecord]
    const secrets: Record<string, ListedSecret['id']> = {}
    const add = async (name: string, createdMs: number, expiresAt: Date | null, of = client) => {
      secrets[name] = randomUUID() as string as ListedSecret['id']
      const insert = `insert into oauth_client_secret (document_id, client, secret_hash, created_at, expires_at)
        values ($1, $2, $3, $4, $5)`
      await database.pool.query(insert, [secrets[name], of.id, Buffer.from(name), at(createdMs), expiresAt])
    }
    await add('newest', 5, at(100))
    await add('newer', 3, null)
    await add('foreign', 9, null, beside)
    const list = async (ms: number, of = client) =>
      (await findSecrets(db, { client: of.id, now: at(ms) }))?.map(({ id }) => id)
    expect(await list(0, clients[2])).toHaveLength(1)
    expect((await list(99))?.slice(0, 2)).toEqual([secrets.newest, secrets.newer])
    expect(await list(99)).toHaveLength(3)
    expect((await list(100))?.[0]).toBe(secrets.newer)
    expect(await findSecrets(db, { client: randomUUID(), now: NOW })).toBeUndefined()

    const usesOf = async (of: ClientRecord) =>
      new Map((await findSecrets(db, { client: of.id, now: NOW }))?.map(({ id, lastUsedAt }) => [id, lastUsedAt]))
    const touch = (name: string, ms: number, beforeMs: number, of = client) =>
      touchSecret(db, { client: of.id, hash: Buffer.from(name), now: at(ms), before: at(beforeMs) })
    await touch('newest', 10, 0)
    await touch('newest', 20, 9)
    await touch('foreign', 30, 0)
    expect((await usesOf(client)).get(secrets.newest!)).toEqual(at(10))
    await touch('newest', 40, 10)
    const uses = await usesOf(client)
    expect([uses.get(secrets.newest!), uses.get(secrets.newer!)]).toEqual([at(40), null])
    expect([...(await usesOf(beside)).values()]).toEqual([null, null])

    const remove = (name: string, ms: number, of = client) =>
      removeSecret(db, { client: of.id, secret: secrets[name]!, now: at(ms) })
    expect([await remove('foreign', 0), await remove('newest', 100)]).toEqual([undefined, undefined])
    expect(await remove('newest', 99)).toEqual({
      ...{ id: secrets.newest, createdAt: at(5), expiresAt: at(100), lastUsedAt: at(40) },
    })
    expect(await remove('newer', 99)).toMatchObject({ id: secrets.newer })
    expect([(await list(0))?.length, (await list(0, beside))?.length]).toEqual([1, 2])
    await write((tx) => deleteClient(tx, client.id, NOW))
    expect(await list(0)).toBeUndefined()
  })

  test('count until the instant at which they end', async () => {
    const [client] = clients as [ClientRecord]
    await rotate(client.id, at(60_000))
    const count = async (now: Date) => (await write((tx) => lockClient(tx, client.id, now)))?.liveSecrets
    expect([await count(at(59_999)), await count(at(60_000))]).toEqual([2, 1])
  })
})

test('clients that registered themselves and have no grant are deleted once they are old, and no others', async () => {
  const old = await make({ registration: 'dynamic', createdAt: at(-1) })
  const used = await make({ registration: 'dynamic', createdAt: at(-1) })
  const young = await make({ registration: 'dynamic', createdAt: NOW })
  const made = await make({ createdAt: at(-1) })
  const userId = randomUUID()
  await database.pool.query(
    `insert into "user" (document_id, email, created_at, updated_at) values ($1, 'a@b.test', $2, $2)`,
    [userId, NOW],
  )
  await database.pool.query(
    `insert into oauth_grant (document_id, "user", client, scopes, refused_scopes, redirect_uris, created_at, updated_at)
     values ($1, $2, $3, '{openid}', '{}', '{}', $4, $4)`,
    [randomUUID(), userId, used.id, NOW],
  )
  expect(await deleteUnusedClients(db, NOW, 100)).toBe(1)
  const kept = await Promise.all(
    [old, used, young, made].map(async ({ id }) => (await findClient(db, { id })) !== undefined),
  )
  expect(kept).toEqual([false, true, true, true])
})

test('unused clients are deleted in batches, the oldest first', async () => {
  for (const ms of [-10, -30, -20]) await make({ registration: 'dynamic', createdAt: at(ms) })
  expect(await deleteUnusedClients(db, NOW, 2)).toBe(2)
  const { rows } = await database.pool.query(
    `select created_at from oauth_client where registration = 'dynamic' and created_at < $1`,
    [NOW],
  )
  expect(rows.map(({ created_at }) => created_at)).toContainEqual(at(-10))
})
