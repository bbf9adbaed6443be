import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { logtoHash, makeSecret, PASSWORD, supabaseUser, TOTP_TEXT } from './people-exports.ts'
import { openPeopleFixture, type PeopleFixture } from './people-fixture.ts'

/**
 * The statements of the guides, on tables with the columns of the other systems: `auth.*` of Supabase Auth and those of
 * Logto, as their migrations make them.
 */

vi.setConfig({ testTimeout: 120_000 })

let fixture: PeopleFixture
let other: TestDatabase
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox exports '))
  fixture = await openPeopleFixture()
  other = await createTestDatabase()
})
afterAll(async () => {
  await fixture?.[Symbol.asyncDispose]()
  await other?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** The files that a guide writes by `cat`, by their names. */
async function readStatements(guide: string): Promise<Record<string, string>> {
  const text = await readFile(join(PROJECT_ROOT, 'docs', 'guides', guide), 'utf8')
  const found = text.matchAll(/^cat > (\S+\.sql) <<'END'\n([\s\S]*?)^END$/gm)
  return Object.fromEntries([...found].map(([, name = '', sql = '']) => [name, sql]))
}

/** The lines that `psql -At` prints: the first column of each row, as text. */
async function exportRows(statements: string): Promise<string> {
  const client = new pg.Client({ connectionString: other.connectionString })
  await client.connect()
  try {
    const asText = { getTypeParser: () => (value: string) => value } as unknown as pg.CustomTypesConfig
    const given: pg.QueryResult | pg.QueryResult[] = await client.query({ text: statements, types: asText })
    const lines = [given].flat().flatMap(({ rows }) => rows.map((row: object) => String(Object.values(row)[0])))
    const path = join(folder, 'people.jsonl')
    await writeFile(path, lines.join('\n'))
    return path
  } finally {
    await client.end()
  }
}

test('the statements of the guide from Supabase Auth export what the import reads', async () => {
  await other.pool.query(`
    create schema auth;
    create table auth.users (instance_id uuid, id uuid primary key, aud varchar, role varchar, email varchar,
      encrypted_password varchar, email_confirmed_at timestamptz, raw_app_meta_data jsonb, raw_user_meta_data jsonb,
      phone text, banned_until timestamptz, is_sso_user boolean, deleted_at timestamptz, is_anonymous boolean);
    create table auth.identities (provider_id text not null, user_id uuid not null, identity_data jsonb not null,
      provider text not null, email text, id uuid primary key default gen_random_uuid());
    create table auth.mfa_factors (id uuid primary key default gen_random_uuid(), user_id uuid, friendly_name text,
      factor_type text, status text, secret text, phone text, web_authn_credential jsonb, web_authn_aaguid uuid);
    create table auth.oauth_clients (id uuid primary key, client_secret_hash text, registration_type text,
      redirect_uris text, grant_types text, client_name text, client_uri text, logo_uri text, created_at timestamptz,
      updated_at timestamptz, deleted_at timestamptz, client_type text)`)
  const user = supabaseUser()
  await other.pool.query(
    `insert into auth.users (id, email, encrypted_password, email_confirmed_at, raw_user_meta_data, banned_until)
     values ($1, $2, $3, now(), $4, 'infinity')`,
    [user.id, user.email, user.encrypted_password, JSON.stringify({ full_name: 'Ada "L" \\ Lovelace\n' })],
  )
  await other.pool.query(
    `insert into auth.identities (provider_id, user_id, identity_data, provider, email)
     values ('4711', $1, '{"sub": "4711", "email_verified": true}', 'google', 'ada@example.com')`,
    [user.id],
  )
  await other.pool.query(
    `insert into auth.mfa_factors (user_id, factor_type, status, secret) values ($1, 'totp', 'verified', $2)`,
    [user.id, TOTP_TEXT],
  )
  await other.pool.query(
    `insert into auth.oauth_clients (id, client_secret_hash, redirect_uris, grant_types, client_name, client_type)
     values (gen_random_uuid(), $1, 'https://app.example.com/cb', 'authorization_code', 'Acme', 'confidential')`,
    [Buffer.alloc(32, 7).toString('base64url')],
  )
  const statements = await readStatements('move-from-supabase-auth.md')
  expect(Object.keys(statements)).toEqual(['people.sql', 'clients.sql'])
  const file = await exportRows(`${statements['people.sql']}${statements['clients.sql']}`)
  const { summary, results } = await fixture.readRun('supabase-auth', '--from', file, '--apply')
  expect(summary).toMatchObject({
    people: { created: 1 },
    clients: { created: 1 },
    identities: 1,
    authenticator_apps: 1,
  })
  expect(results.find(({ kind }) => kind === 'person').notes).toEqual([
    'banned until an unknown time; here until somebody enables it',
  ])
  expect(await fixture.readUser(user.email)).toMatchObject({
    document_id: user.id,
    name: 'Ada "L" \\ Lovelace',
    is_actived: false,
    password_hash: expect.stringMatching(/^imported/),
  })
})

test('the statements of the guide from Logto export what the import reads', async () => {
  await other.pool.query(`
    create table users (tenant_id varchar(21) not null, id varchar(12) primary key, username varchar(128),
      primary_email varchar(128), primary_phone varchar(128), password_encrypted varchar(256),
      password_encryption_method text, name varchar(128), avatar varchar(2048), profile jsonb not null default '{}',
      identities jsonb not null default '{}', custom_data jsonb not null default '{}',
      mfa_verifications jsonb not null default '[]', is_suspended boolean not null default false);
    create table user_sso_identities (tenant_id varchar(21), id varchar(21), user_id varchar(12), issuer varchar(256));
    create table applications (tenant_id varchar(21) not null, id varchar(21) primary key, name varchar(256) not null,
      secret varchar(64) not null, description text, type text not null, oidc_client_metadata jsonb not null,
      custom_client_metadata jsonb not null default '{}', is_third_party boolean not null default false);
    create table application_secrets (tenant_id varchar(21) not null, application_id varchar(21) not null,
      name varchar(256) not null, value varchar(64) not null, created_at timestamptz default now(), expires_at timestamptz)`)
  await other.pool.query(
    `insert into users (tenant_id, id, primary_email, password_encrypted, password_encryption_method, identities)
     values ('default', 'f3k9x2m7q1zp', 'ada-of-logto@example.com', $1, 'Argon2i', '{"google": {"userId": "4712"}}')`,
    [logtoHash(8)],
  )
  await other.pool.query(
    `insert into applications (tenant_id, id, name, secret, type, oidc_client_metadata)
     values ('default', 'k2j8', 'Acme', 'internal:x', 'Traditional', '{"redirectUris": ["https://app.example.com/cb"]}')`,
  )
  await other.pool.query(
    `insert into application_secrets (tenant_id, application_id, name, value) values ('default', 'k2j8', 'one', $1)`,
    [makeSecret()],
  )
  const statements = await readStatements('move-from-logto.md')
  const file = await exportRows(statements['people.sql'] ?? '')
  const { summary, results } = await fixture.readRun('logto', '--from', file, '--apply')
  expect(summary).toMatchObject({ people: { created: 1 }, clients: { created: 1 }, with_password: 1, identities: 1 })
  const client = results.find(({ kind }) => kind === 'client')
  expect(client.notes).toEqual([`its client_id is ${client.id} here`])
  expect((await fixture.signIn('ada-of-logto@example.com', PASSWORD)).status).toBe(200)
})
