import { expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { type Receiver, startReceiver } from '../../../test/harness/fakes/receiver.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { verifyTimestamped } from '../../outbound/signature.ts'
import { WEBHOOK_SECRETS } from '../../webhook/registry/stored-secrets.ts'
import { secretContextOf } from '../../webhook/registry/webhook.ts'
import { reencryptSecrets } from './reencrypt.ts'

const OLD = 'an-old-key-of-at-least-thirty-two-bytes'
const NEW = 'a-new-key-of-at-least-thirty-two-bytes'
const LOST = 'a-lost-key-of-at-least-thirty-two-bytes'

/** One service after the other on one database, each with its own SECRET_KEY, as over the days of a rotation. */
async function startFixture() {
  const database = await createTestDatabase({ content: 'prepared' })
  const receiver = await startReceiver()
  const clock = buildManualClock()
  return {
    database,
    receiver,
    open: (...secretKey: string[]) =>
      createTestApp({
        database,
        clock,
        secretKey,
        env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}` },
      }),
    readSealed: async () =>
      (await database.pool.query('select document_id as id, secret_encrypted as sealed, updated_at from webhook')).rows,
    [Symbol.asyncDispose]: async () => {
      await receiver.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

async function createWebhook(app: TestApp, receiver: Receiver): Promise<{ id: string; secret: string }> {
  const { body } = await app.admin('POST', '/api/v3/webhook/webhook', { url: `${receiver.origin}/`, is_global: true })
  return { id: body.data.document_id, secret: body.data.secret }
}

/** Sends a test delivery and says whether it was signed with `secret`; undefined when none arrived. */
async function isDeliveredWith(app: TestApp, receiver: Receiver, webhook: { id: string; secret: string }) {
  const before = receiver.requests.length
  await app.admin('POST', `/api/v3/webhook/webhook/${webhook.id}/test`)
  await app.settle()
  const request = receiver.requests[before]
  if (!request) return undefined
  return verifyTimestamped({
    secret: webhook.secret,
    header: request.headers['x-service-signature'],
    body: request.body,
    nowSeconds: Math.floor(app.clock.now() / 1000),
  }).ok
}

test('a rotation of SECRET_KEY seals every secret anew, and deliveries go on before, during and after it', async () => {
  await using fixture = await startFixture()
  const { receiver } = fixture
  const first = await fixture.open(OLD)
  const webhooks = [await createWebhook(first, receiver), await createWebhook(first, receiver)]
  const deleted = await createWebhook(first, receiver)
  await first.admin('DELETE', `/api/v3/webhook/webhook/${deleted.id}`)
  expect(await isDeliveredWith(first, receiver, webhooks[0]!)).toBe(true)
  await first.app.stop()

  const second = await fixture.open(NEW, OLD)
  expect(await isDeliveredWith(second, receiver, webhooks[0]!)).toBe(true)
  const before = await fixture.readSealed()
  expect(await second.app.maintenance.sweep()).toMatchObject({ reencrypted: 3 })
  expect(await second.app.maintenance.sweep()).toMatchObject({ reencrypted: 0 })
  const after = await fixture.readSealed()
  for (const { sealed } of after) expect(sealed.startsWith(second.app.keyring.currentPrefix)).toBe(true)
  expect(after.map((row) => row.updated_at)).toEqual(before.map((row) => row.updated_at))
  await second.app.stop()

  const third = await fixture.open(NEW)
  for (const webhook of webhooks) expect(await isDeliveredWith(third, receiver, webhook)).toBe(true)
  await third.app.stop()
})

test('a rotation of SECRET_KEY seals headers and private keys of webhooks anew, and deliveries have both all the time', async () => {
  await using fixture = await startFixture()
  const { receiver } = fixture
  const first = await fixture.open(OLD)
  const headers = { Authorization: 'Bearer of-the-subscriber' }
  const body = { url: `${receiver.origin}/`, is_global: true, headers, asymmetric_signature: true }
  const path = `/api/v3/webhook/webhook/${(await first.admin('POST', '/api/v3/webhook/webhook', body)).body.data.document_id}`
  await first.app.stop()

  const second = await fixture.open(NEW, OLD)
  await second.admin('POST', `${path}/test`)
  await second.settle()
  expect(await second.app.maintenance.sweep()).toMatchObject({ reencrypted: 3 })
  const { rows } = await fixture.database.pool.query('select headers_encrypted, signing_key_encrypted from webhook')
  for (const sealed of Object.values<string>(rows[0]))
    expect(sealed.startsWith(second.app.keyring.currentPrefix)).toBe(true)
  await second.app.stop()

  const third = await fixture.open(NEW)
  await third.admin('POST', `${path}/test`)
  await third.settle()
  expect(receiver.requests.map((request) => request.headers.authorization)).toEqual([
    'Bearer of-the-subscriber',
    'Bearer of-the-subscriber',
  ])
  for (const request of receiver.requests) expect(request.headers['webhook-signature']).toContain(' v1a,')
  await third.app.stop()
})

test('a secret that no key opens is left as it is and keeps no other from being sealed anew', async () => {
  await using fixture = await startFixture()
  const app = await fixture.open(LOST)
  const lost = await createWebhook(app, fixture.receiver)
  await app.app.stop()
  const old = await fixture.open(OLD)
  const kept = await createWebhook(old, fixture.receiver)
  await old.app.stop()
  const sealedBefore = (await fixture.readSealed()).find((row) => row.id === lost.id)

  const rotating = await fixture.open(NEW, OLD)
  expect(await rotating.app.maintenance.sweep()).toMatchObject({ reencrypted: 1 })
  expect((await fixture.readSealed()).find((row) => row.id === lost.id)).toEqual(sealedBefore)
  expect(await isDeliveredWith(rotating, fixture.receiver, kept)).toBe(true)
  expect(await isDeliveredWith(rotating, fixture.receiver, lost)).toBeUndefined()
  await rotating.app.stop()
})

test('more secrets than one batch holds are all sealed anew, past unreadable ones and ones that were never made', async () => {
  await using database = await createTestDatabase()
  const old = buildKeyring([OLD], systemRandom)
  const lost = buildKeyring([LOST], systemRandom)
  const box = buildKeyring([NEW, OLD], systemRandom)
  const idOf = (n: number) => `01990000-0000-7000-8000-${n.toString().padStart(12, '0')}`
  const now = new Date('2026-09-11T12:00:00Z')
  const rows = Array.from({ length: 450 }, (_, n) => {
    const sealed = n % 3 === 0 ? lost : old
    const context = secretContextOf(idOf(n) as Parameters<typeof secretContextOf>[0])
    return {
      document_id: idOf(n),
      url: 'https://hooks.example.com/',
      is_global: true,
      secret_encrypted: n === 449 ? null : sealed.seal(`whsec_${n}`, context),
      created_at: now,
      updated_at: now,
    }
  })
  await database.db.insertInto('webhook').values(rows).execute()
  expect(await reencryptSecrets({ keyring: box }, database.db, WEBHOOK_SECRETS)).toBe(299)
  const after = await database.db.selectFrom('webhook').select(['document_id', 'secret_encrypted']).execute()
  const current = buildKeyring([NEW], systemRandom)
  const opened = after.filter((row) => row.secret_encrypted?.startsWith(current.currentPrefix))
  expect(opened).toHaveLength(299)
  for (const row of opened) {
    const context = secretContextOf(row.document_id as Parameters<typeof secretContextOf>[0])
    expect(current.open(row.secret_encrypted ?? '', context)).toBe(`whsec_${Number(row.document_id.slice(-12))}`)
  }
})

test('a failure of the database is told, and not taken for a secret that does not open', async () => {
  await using database = await createTestDatabase()
  const now = new Date('2026-09-11T12:00:00Z')
  const id = '01990000-0000-7000-8000-000000000001' as Parameters<typeof secretContextOf>[0]
  const sealed = buildKeyring([OLD], systemRandom).seal('whsec_x', secretContextOf(id))
  const row = { document_id: id, url: 'https://hooks.example.com/', is_global: true, secret_encrypted: sealed }
  await database.db
    .insertInto('webhook')
    .values({ ...row, created_at: now, updated_at: now })
    .execute()
  await database.pool.query(
    `create function refuse_in_test() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`,
  )
  await database.pool.query(`create trigger refuse before update on webhook execute function refuse_in_test()`)
  const box = buildKeyring([NEW, OLD], systemRandom)
  await expect(reencryptSecrets({ keyring: box }, database.db, WEBHOOK_SECRETS)).rejects.toThrow('refused')
})

test('a fault of the keyring itself is told too', async () => {
  await using database = await createTestDatabase()
  const list = async () => [{ id: 'one', secretEncrypted: 'v1.any' }]
  const secrets = { list, replace: async () => {}, contextOf: () => 'context' }
  const open = () => {
    throw new TypeError('a fault of the program')
  }
  const keyring = { ...buildKeyring([NEW], systemRandom), open }
  await expect(reencryptSecrets({ keyring }, database.db, secrets)).rejects.toThrow('a fault of the program')
})
