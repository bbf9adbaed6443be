import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AccountId, SessionId, UserId } from '../../src/base/id.ts'
import { listMembersAmong } from '../../src/identity/account/account.ts'
import { findKeyCaller, findSessionCaller, findUserCallers } from '../../src/identity/caller/caller.store.ts'
import type { MailId } from '../../src/identity/mail/mail.ts'
import { findOwnedSession } from '../../src/identity/session/list/session-list.store.ts'
import { findStateByUid } from '../../src/oauth/provider/state/state.store.ts'
import { loadBrowser, loadTokens } from '../../src/oauth/provider/state/state-load.store.ts'
import { type Database, INDEX_PLANS } from '../../src/postgres/statement/database.ts'
import { findJudgedMail } from '../../src/webhook/mail/mail-check.store.ts'
import { findMailSetting } from '../../src/webhook/mail/mail-setting.store.ts'
import { listDueNotices, listOperatorReaders, listReaders } from '../../src/webhook/mail/notice.store.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { openWatched, type WatchedDatabase } from '../harness/plan/explain.ts'
import { expectFewReads, keepUnanalysed } from '../harness/plan/plan-reads.ts'
import { listReadsInStates } from '../harness/plan/request-plans.ts'

/** Users, each with two sessions, a key, an account, an app, its grant and tokens, and a webhook. */
const PEOPLE = 2_000
/** As many as a table of a few rows has. */
const FEW = 5
/** Maximum that one call reads: the rows of one user, with their former versions, and the permissions of its role. */
const MOST = 48
/** Tables that what is stored for users does not fill. */
const SMALL = ['role', 'role_permission', 'event']
const NOW = new Date('2030-01-01T00:00:00Z')
const AT = sql`${NOW.toISOString()}::timestamptz`

const idOf = (n: number) => `00000000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
/** The user that every call is about. */
const ONE = 1
const ID = idOf(ONE)
const CHILD = idOf(ONE + 1_000_000)

/** Writes the users with the numbers from `first` to `last`, without triggers and checks of references. */
async function addUsers(db: Database, first: number, last: number): Promise<void> {
  const id = (plus = 0) => sql.raw(`('00000000-0000-7000-8000-' || lpad(to_hex(n + ${plus}), 12, '0'))::uuid`)
  const later = sql`${AT} + interval '1 day'`
  const hash = (text: string) => sql.raw(`sha256(convert_to('${text}' || n, 'UTF8'))`)
  const of = sql`from generate_series(${first}::int, ${last}::int) n`
  await db.transaction().execute(async (tx) => {
    const run = (text: ReturnType<typeof sql>) => text.execute(tx)
    await run(sql`set local session_replication_role = replica`)
    await run(sql`insert into "user" (document_id, email, email_verified_at, created_at, updated_at)
      select ${id()}, 'person' || n || '@example.com', ${AT}, ${AT}, ${AT} ${of}`)
    await run(sql`insert into account (document_id, name, created_at, updated_at)
      select ${id()}, 'Account ' || n, ${AT}, ${AT} ${of}`)
    await run(sql`insert into account_member (document_id, account, "user", created_at, updated_at)
      select ${id()}, ${id()}, ${id()}, ${AT}, ${AT} ${of}`)
    await run(sql`insert into account_member_role (member, role, created_at)
      select ${id()}, r.document_id, ${AT} ${of}, role r where r.name = 'account-viewer'`)
    await run(sql`insert into user_role ("user", role, created_at)
      select ${id()}, r.document_id, ${AT} ${of}, role r where r.name = 'member'`)
    await run(sql`insert into session (document_id, "user", parent, client_id, scope, grant_id, expires_at, created_at,
        updated_at, auth_time, last_used_at)
      select ${id()}, ${id()}, null::uuid, null, null, null, ${later}, ${AT}, ${AT}, ${AT}, ${AT} ${of}
      union all select ${id(1_000_000)}, ${id()}, ${id()}, ${id()}::text, 'openid', ${id()}::text, ${later}, ${AT}, ${AT},
        ${AT}, ${AT} ${of}`)
    await run(sql`insert into api_key (document_id, "user", account, name, token_hash, hint, permissions, created_at, updated_at)
      select ${id()}, ${id()}, ${id()}, 'key', ${hash('key ')}, 'k', '{}', ${AT}, ${AT} ${of}`)
    await run(sql`insert into identity (document_id, "user", provider, subject, engine_subject, created_at, updated_at)
      select ${id()}, ${id()}, 'google', 'subject ' || n, 'engine ' || n, ${AT}, ${AT} ${of}`)
    await run(sql`insert into oauth_client (document_id, name, type, application_type, redirect_uris,
        post_logout_redirect_uris, grant_types, scopes, first_party, id_token_signed_response_alg,
        dpop_bound_access_tokens, registration, created_at, updated_at)
      select ${id()}, 'App', 'public', 'web', '{}', '{}', '{}', '{}', false, 'ES256', false, 'administrator', ${AT}, ${AT} ${of}`)
    await run(sql`insert into oauth_grant (document_id, "user", client, scopes, refused_scopes, created_at, updated_at)
      select ${id()}, ${id()}, ${id()}, '{openid}', '{}', ${AT} + n * interval '1 minute', ${AT} ${of}`)
    await run(sql`insert into engine_grant (document_id, "user", client, client_name, scopes, created_at, updated_at)
      select ${id()}, ${id()}, ${id()}, 'App', '{openid}', ${AT}, ${AT} ${of}`)
    await run(sql`insert into oauth_state (model, id_hash, payload, grant_id, consent, uid, expires_at)
      select 'AccessToken', ${hash('token ')}, jsonb_build_object('accountId', ${id()}, 'clientId', ${id()},
        'sessionUid', 'uid ' || n, 'expiresWithSession', true), ${id()}::text, ${id()}, null, ${later} ${of}
      union all select 'Session', ${hash('browser ')}, jsonb_build_object('accountId', ${id()}, 'browserSession', ${id()}),
        null, null, 'uid ' || n, ${later} ${of}`)
    await run(sql`insert into connection_domain (document_id, connection, account, domain, token, verified_at, verified_by,
        created_at, updated_at)
      select ${id()}, ${id()}, ${id()}, 'domain' || n || '.example', 'token', ${AT}, 'dns', ${AT}, ${AT} ${of}`)
    await run(sql`insert into webhook (document_id, url, account, contacts, created_at, updated_at)
      select ${id()}, 'https://hooks.example.com/', ${id()}, array[${id()}], ${AT}, ${AT} ${of}`)
    await run(sql`insert into webhook_mail_notice (webhook, kind, account, dispatch, is_queued, created_at)
      select ${id()}, 'failing', ${id()}, ${id()}, true, ${AT} ${of}`)
    await run(sql`insert into mail_outbox (document_id, kind, recipient, due_at, expires_at, created_at)
      select ${id()}, 'webhook', 'person' || n || '@example.com', ${AT}, ${later}, ${AT} ${of}`)
    await run(sql`insert into webhook_mail_recipient (mail, "user", account, webhooks)
      select ${id()}, ${id()}, ${id()}, array[${id()}] ${of}`)
    await run(sql`insert into webhook_mail_setting ("user", created_at, updated_at) select ${id()}, ${AT}, ${AT} ${of}`)
    await run(sql`insert into webhook_event (document_id, webhook, event, account, created_at, updated_at)
      select ${id()}, ${id()}, e.document_id, ${id()}, ${AT}, ${AT} ${of}, event e where e.internal = 'contract.create'`)
  })
}

const TABLES = ['user', 'account', 'account_member', 'user_role', 'session', 'api_key', 'identity', 'oauth_client']
const OTHERS = [
  ...['account_member_role', 'oauth_grant', 'engine_grant', 'oauth_state', 'webhook', 'webhook_event', 'mail_outbox'],
  ...['webhook_mail_notice', 'webhook_mail_recipient', 'webhook_mail_setting', 'connection_domain'],
]

const hashOf = (db: Database, text: string) =>
  sql<{ hash: Buffer }>`select sha256(convert_to(${text}, 'UTF8')) as hash`
    .execute(db)
    .then(({ rows }) => rows[0]?.hash)

/** The functions that requests call, each for the one user. */
const CALLS: Record<string, ReturnType<typeof sql>> = {
  claim_exchange: sql`claim_exchange(${ID}, null, true, ${ID}, ${ID}, 'token 1', ${AT}, ${AT})`,
  'claim_exchange of the engine': sql`claim_exchange(null, 'engine 1', false, ${ID}, null, '', ${AT}, ${AT})`,
  provider_token_fault: sql`provider_token_fault(${ID}, ${ID}, 'token 1', ${AT})`,
  end_grant: sql`end_grant(${ID}, true, ${AT})`,
  end_client: sql`end_client(${ID}, ${AT})`,
  end_engine_grant: sql`end_engine_grant(${ID}, ${ID}, ${AT})`,
  revoke_session: sql`revoke_session(${ID}, ${AT})`,
  root_session: sql`root_session(${CHILD})`,
  revoke_sessions_of: sql`revoke_sessions_of(${ID}, ${AT})`,
  lock_tokens: sql`lock_tokens(${ID})`,
  key_maker: sql`key_maker(${ID}, ${ID}, ${ID}, ${AT})`,
  user_holdings: sql`user_holdings(${ID})`,
  accounts_of: sql`accounts_of(${ID})`,
  first_account_of: sql`first_account_of(${ID})`,
  membership_of: sql`membership_of(${ID}, ${ID})`,
  roles_of: sql`roles_of(${ID})`,
  has_second_factor: sql`has_second_factor(${ID})`,
  lock_identity: sql`lock_identity('google', 'subject 1', 'person1@example.com')`,
  identities_of: sql`identities_of(${ID})`,
  user_of_subject: sql`user_of_subject('engine 1')`,
  is_living_user: sql`is_living_user(${ID})`,
  is_living_account: sql`is_living_account(${ID})`,
  account_use: sql`account_use(${ID})`,
  links_of: sql`links_of(${ID})`,
}

/** Statements that check a token, of stores. */
const CHECKS: Record<string, (db: Database) => Promise<unknown>> = {
  'a session': (db) => findSessionCaller(db, { sessionId: ID as SessionId, userId: ID as UserId, now: NOW }),
  'a session of an administrator': (db) => findOwnedSession(db, { id: ID, now: NOW }),
  'an API key': async (db) => findKeyCaller(db, { tokenHash: keyHash, now: NOW }),
  users: (db) => findUserCallers(db, [ID as UserId]),
  'a token of the provider': (db) => loadTokens(db, { models: ['AccessToken'], idHash: tokenHash, now: NOW }),
  'a browser at the provider': (db) =>
    loadBrowser(db, { idHash: browserHash, sessionId: ID, userId: ID, clientId: ID, now: NOW }),
  'the notices of an account': (db) => listDueNotices(db, { account: ID as AccountId, limit: 10 }),
  'the readers of mails': (db) =>
    listReaders(db, { account: ID as AccountId, contacts: [ID as UserId], administrator: 'account-admin', limit: 10 }),
  'the readers of mails about global webhooks': (db) => listOperatorReaders(db, { patterns: ['*:*'], limit: 10 }),
  'a mail about webhooks': (db) =>
    findJudgedMail(db, {
      ...{ mail: ID as MailId, to: 'person1@example.com', administrator: 'account-admin' },
      operatorPatterns: ['*:*'],
    }),
  'the members among contacts': (db) => listMembersAmong(db, { account: ID, users: [ID] }),
  'a mail setting': (db) => findMailSetting(db, { user: ID as UserId }),
  'a session of the provider': (db) => findStateByUid(db, { model: 'Session', uid: 'uid 1', now: NOW }),
}

let database: TestDatabase
let watched: WatchedDatabase
let keyHash: Buffer
let tokenHash: Buffer
let browserHash: Buffer

/** Runs a call, and leaves everything as it was. */
async function runBack(db: Database, run: (db: Database) => Promise<unknown>): Promise<unknown> {
  const tx = await db.startTransaction().execute()
  try {
    return await run(tx)
  } finally {
    await tx.rollback().execute()
  }
}

const call = (text: ReturnType<typeof sql>) => async (db: Database) =>
  (await sql`select to_jsonb(f) as found from ${text} f`.execute(db)).rows
const ALL = { ...Object.fromEntries(Object.entries(CALLS).map(([name, text]) => [name, call(text)])), ...CHECKS }

beforeAll(async () => {
  database = await createTestDatabase({ content: 'prepared', isOwn: true })
  await keepUnanalysed(database.db, [...TABLES, ...OTHERS])
  const hashes = await Promise.all(['key 1', 'token 1', 'browser 1'].map((text) => hashOf(database.db, text)))
  ;[keyHash, tokenHash, browserHash] = hashes as [Buffer, Buffer, Buffer]
  watched = openWatched(database, `${INDEX_PLANS} -c plan_cache_mode=force_generic_plan`)
  // The plans are made on one row of each kind, and kept.
  await addUsers(database.db, ONE, ONE)
  for (const run of Object.values(ALL)) await runBack(watched.db, run)
  await addUsers(database.db, ONE + 1, PEOPLE)
})
afterAll(async () => {
  await watched[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

async function expectRowsOfOne(name: string): Promise<void> {
  const run = ALL[name] as (db: Database) => Promise<unknown>
  const found = await expectFewReads(watched, { most: MOST, small: SMALL }, (db) => runBack(db, run))
  expect(found).toEqual(await runBack(database.db, run))
  expect(found).not.toEqual([])
}

test.each(Object.keys(ALL))(
  '%s reads the rows of one user among many, by plans made before those were written',
  expectRowsOfOne,
)

// PostgreSQL plans anew also when it has lost count of what others changed.
test.each(Object.keys(ALL))('%s does so by plans made afterwards, without statistics', async (name) => {
  await sql`discard plans`.execute(watched.db)
  await expectRowsOfOne(name)
})

test('no plan of these reads through what others have stored, in whatever state the tables are when it is made', async () => {
  await using few = await createTestDatabase({ content: 'prepared', isOwn: true })
  await addUsers(few.db, ONE, FEW)
  const { reads, plans } = await listReadsInStates(few.connectionString, async (db) => {
    for (const run of Object.values(ALL)) await run(db)
  })
  expect(plans).toBeGreaterThan(3 * Object.keys(ALL).length)
  expect(reads.filter((read) => !SMALL.includes(read.table))).toEqual([])
})
