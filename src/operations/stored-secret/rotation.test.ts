import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { prepareForTest } from '../../../test/harness/app/prepared-database.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { addWebhook } from '../../../test/harness/delivery/ledger-rows.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildKeyring, type Keyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { describeRotation } from './rotation.ts'
import { findLostKey, readSecretFacts } from './secret-health.ts'
import { countSecrets } from './stored-secret.store.ts'

const OLD = 'an-old-key-of-at-least-thirty-two-bytes'
const NEW = 'a-new-key-of-at-least-thirty-two-bytes'
const LOST = 'a-lost-key-of-at-least-thirty-two-bytes'
const ringOf = (...secrets: string[]) => buildKeyring(secrets, systemRandom)
const NOW = new Date('2026-09-11T12:00:00Z')

/** Puts one secret of each table under a keyring. Returns what every table holds. */
async function sealOneOfEach(db: Database, keyring: Keyring, nth: number): Promise<void> {
  const id = `01990000-0000-7000-8000-00000000000${nth}`
  const userId = `01990000-0000-7000-9000-00000000000${nth}`
  const times = { created_at: NOW, updated_at: NOW }
  const sealed = (context: string) => keyring.seal('a secret', `${context}:${id}`)
  const user = { document_id: userId, email: `p${nth}@example.com`, email_verified_at: NOW, ...times }
  await db.insertInto('user').values(user).execute()
  await db
    .insertInto('webhook')
    .values({
      document_id: id,
      url: 'https://a.example/',
      is_global: true,
      secret_encrypted: sealed('webhook'),
      ...times,
    })
    .execute()
  await db
    .insertInto('provisioning_target')
    .values({
      document_id: id,
      protocol: 'webhook',
      url: 'https://a.example/',
      secret_encrypted: sealed('target'),
      ...times,
    })
    .execute()
  const account = `01990000-0000-7000-a000-00000000000${nth}`
  await db
    .insertInto('account')
    .values({ document_id: account, name: 'Corp', ...times })
    .execute()
  const oidc = { issuer: 'https://a.example', client_id: 'a', scopes: ['openid'], is_email_trusted: false }
  await db
    .insertInto('connection')
    .values({
      ...{ document_id: id, account, kind: 'oidc', name: 'Corp', ...oidc },
      ...{ secret_encrypted: sealed('connection'), ...times },
    })
    .execute()
  await db
    .insertInto('totp_factor')
    .values({ document_id: id, user: userId, secret_encrypted: sealed('totp'), ...times })
    .execute()
  await db
    .insertInto('oauth_signing_key')
    .values({ kid: `k${nth}`, alg: 'ES256', private_key: sealed('key'), active_at: NOW, created_at: NOW })
    .execute()
  await db
    .insertInto('cell')
    .values({ name: `c${nth}`, state: 'active', database_url_encrypted: sealed('cell'), ...times })
    .execute()
}

const TABLES = ['cell', 'connection', 'oauth_signing_key', 'provisioning_target', 'totp_factor', 'webhook']

test('secrets of every table are counted by key, and the facts name the tables and keys that do not open', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const { db } = database
  await sealOneOfEach(db, ringOf(OLD), 1)
  await sealOneOfEach(db, ringOf(LOST), 2)
  const ring = ringOf(NEW, OLD)
  const [lost = ''] = ringOf(LOST).keyIds
  expect(await readSecretFacts(db, ring.keyIds)).toEqual({
    unreadable: 6,
    unreadable_by_table: Object.fromEntries(TABLES.map((table) => [table, 1])),
    missing_keys: [lost],
    is_rotating: true,
    remedy: expect.stringContaining('Add the missing keys'),
  })
  const status = describeRotation(await countSecrets(db, { now: NOW }), ring.keyIds)
  expect(status).toMatchObject({ stale: 6, unreadable: 6, isEnded: false })
  for (const table of TABLES) expect(status.lines.filter((line) => line.startsWith(`${table} `))).toHaveLength(2)
  expect(await readSecretFacts(db, ringOf(OLD, LOST).keyIds)).toMatchObject({ unreadable: 0, remedy: null })
})

test('every table with a sealed column is among those that are counted', async () => {
  await using database = await createTestDatabase()
  const { rows } = await database.pool.query(
    `select table_name, column_name from information_schema.columns
     where table_schema = 'public' and column_name ~ 'encrypted|private_key|sealed' order by 1`,
  )
  expect([...new Set(rows.map((row) => row.table_name))]).toEqual(TABLES)
  expect(rows.map((row) => row.column_name).sort()).toEqual([
    'database_url_encrypted',
    'headers_encrypted',
    'private_key',
    ...Array.from({ length: 4 }, () => 'secret_encrypted'),
    'signing_key_encrypted',
  ])
})

test('a mail that waits under an older key keeps the rotation open until it expires', async () => {
  await using database = await createTestDatabase()
  const expiresAt = new Date(NOW.getTime() + 3_600_000)
  await database.db
    .insertInto('mail_outbox')
    .values({
      document_id: '01990000-0000-7000-8000-000000000001',
      ...{ kind: 'reset', recipient: 'a@example.com', content: ringOf(OLD).seal('x', 'mail') },
      ...{ due_at: NOW, expires_at: expiresAt, created_at: NOW },
    })
    .execute()
  const { keyIds } = ringOf(NEW, OLD)
  const before = describeRotation(await countSecrets(database.db, { now: NOW }), keyIds)
  expect(before).toMatchObject({ stale: 1, isEnded: false })
  expect(before.lines.at(-1)).toContain(`gone at ${expiresAt.toISOString()}`)
  const after = describeRotation(await countSecrets(database.db, { now: expiresAt }), keyIds)
  expect(after.lines.at(-1)).toContain('The rotation has ended: remove the older keys from SECRET_KEY')
  expect(after.isEnded).toBe(true)
})

test('a SECRET_KEY that opens no stored secret is found, and one that opens any or meets an empty database is not', async () => {
  await using database = await createTestDatabase()
  await prepareForTest(database, buildManualClock())
  expect(await findLostKey(database.db, ringOf(NEW).keyIds)).toBeUndefined()
  await sealOneOfEach(database.db, ringOf(OLD), 1)
  const sentence = await findLostKey(database.db, ringOf(NEW).keyIds)
  expect(sentence).toContain('secret_key_mismatch: SECRET_KEY opens none of the 6 secrets')
  expect(sentence).toContain(ringOf(OLD).keyIds[0])
  expect(sentence).not.toContain(OLD)
  expect(await findLostKey(database.db, ringOf(NEW, OLD).keyIds)).toBeUndefined()
  await sealOneOfEach(database.db, ringOf(NEW), 2)
  expect(await findLostKey(database.db, ringOf(NEW).keyIds)).toBeUndefined()
})

test('health is degraded with the number of secrets that do not open, and whole again when the key is back', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const clock = buildManualClock()
  const path = '/api/v3/health/component/stored-secrets'
  const open = (...secretKey: string[]) => createTestApp({ database, clock, secretKey })
  await using old = await open(OLD)
  const webhook = await addWebhook(old)
  await database.pool.query('update webhook set secret_encrypted = $2 where document_id = $1', [
    webhook,
    ringOf(LOST).seal('x', `webhook:${webhook}`),
  ])
  const { body } = await old.anonymous('GET', path)
  expect(body.data).toMatchObject({ component: 'stored-secrets', status: 'degraded', details: { unreadable: 1 } })
  expect((await old.anonymous('GET', '/api/v3/health')).body.data.status).toBe('degraded')
  expect((await old.scrape()).body).toContain('stored_secrets_unreadable 1\n')
  await using mended = await open(OLD, LOST)
  expect((await mended.anonymous('GET', path)).body.data).toMatchObject({
    status: 'operational',
    details: { unreadable: 0, is_rotating: true, remedy: null },
  })
})
