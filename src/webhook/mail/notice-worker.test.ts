import { randomUUID } from 'node:crypto'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { TEST_SECRETS } from '../../../test/harness/app/test-secrets.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { type AccountId, buildIdMaker, type DispatchId, type WebhookId } from '../../base/id.ts'
import { buildKeyring, type Keyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { noteMails } from './notice.store.ts'
import { buildNoticeWorker, COLLECT_S, NOTICES_LIMIT, PACE_S } from './notice-worker.ts'

const KEPT_MS = 3_600_000

const clock = buildManualClock()
const keyring = buildKeyring(TEST_SECRETS.secretKey, systemRandom)
const now = () => new Date(clock.now())
const inMs = (ms: number) => new Date(clock.now() + ms)

let home: TestDatabase
let cell: TestDatabase
let account: AccountId

beforeAll(async () => {
  ;[home, cell] = [await createTestDatabase(), await createTestDatabase()]
  await home.pool.query(
    `insert into role (document_id, name, created_at, updated_at) values (gen_random_uuid(), 'account-admin', now(), now())
     on conflict do nothing`,
  )
})
afterAll(async () => {
  await home[Symbol.asyncDispose]()
  await cell[Symbol.asyncDispose]()
})
beforeEach(async () => {
  clock.advance(86_400_000)
  for (const { pool } of [home, cell])
    for (const table of ['webhook_mail_notice', 'webhook_mail_turn', 'webhook_mail_told', 'mail_outbox'])
      await pool.query(`delete from ${table}`)
  account = await addAccount()
})

/** An account in both databases, with an administrator in home. */
async function addAccount(): Promise<AccountId> {
  const [id, user, member] = [randomUUID(), randomUUID(), randomUUID()]
  for (const { pool } of [home, cell])
    await pool.query(
      `insert into account (document_id, name, created_at, updated_at) values ($1, 'Acme', now(), now())`,
      [id],
    )
  await home.pool.query(
    `insert into "user" (document_id, email, email_verified_at, created_at, updated_at) values ($1, $2, now(), now(), now())`,
    [user, `${user}@b.test`],
  )
  await home.pool.query(
    'insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, now(), now())',
    [member, id, user],
  )
  await home.pool.query(
    `insert into account_member_role (member, role, created_at) select $1, document_id, now() from role where name = 'account-admin'`,
    [member],
  )
  return id as AccountId
}

/** A failing webhook of the account, noticed now. */
async function fail({ pool, db }: TestDatabase, of = account): Promise<WebhookId> {
  const webhook = randomUUID() as WebhookId
  await pool.query(
    `insert into webhook (document_id, url, account, secret_encrypted, created_at, updated_at)
     values ($1, 'https://hooks.example/', $2, '', now(), now())`,
    [webhook, of],
  )
  const notice = { webhook, kind: 'failing', account: of, dispatch: randomUUID() as DispatchId } as const
  await noteMails(db, [{ ...notice, lastError: 'http_5xx', lastStatusCode: 500 }], now())
  return webhook
}

function build(place: 'home' | 'cell', seal: Keyring['seal'] = keyring.seal) {
  return buildNoticeWorker({
    ...{ db: home.db, clock, logger: pino({ enabled: false }), isTrusted: () => true, canSendMail: true },
    ...{ ids: buildIdMaker(clock, systemRandom), keyring: { deriveKeys: keyring.deriveKeys, seal } },
    ...{ baseUrl: () => 'https://signalbox.test', serviceName: 'Signalbox' },
    ...(place === 'cell' && { cell: { db: cell.db, keptMs: KEPT_MS } }),
  })
}

const collect = () => clock.advance(COLLECT_S * 1_000)
const readTurn = async ({ pool }: TestDatabase) =>
  (await pool.query('select due_at, mailed_at from webhook_mail_turn where account = $1', [account])).rows[0]
const countMails = async () => (await home.pool.query('select count(*)::int n from mail_outbox')).rows[0].n

describe.each([
  ['home', () => home],
  ['cell', () => cell],
] as const)('the turn of an account in its %s', (place, databaseOf) => {
  test('comes again ten minutes later for the notices beyond its limit', async () => {
    const database = databaseOf()
    await database.pool.query(
      `with w as (insert into webhook (document_id, url, account, is_actived, created_at, updated_at)
         select gen_random_uuid(), 'https://hooks.example.com/', $1, true, now(), now() from generate_series(1, $2) returning *)
       insert into webhook_mail_notice (webhook, kind, account, dispatch, created_at)
       select document_id, 'failing', $1, document_id, $3 from w`,
      [account, NOTICES_LIMIT + 1, now()],
    )
    collect()
    expect(await build(place).drain()).toBe(1)
    expect(await readTurn(database)).toEqual({ due_at: inMs(PACE_S * 1_000), mailed_at: now() })
    clock.advance(PACE_S * 1_000 - 1)
    expect(await build(place).drain()).toBe(0)
    clock.advance(1)
    expect(await build(place).drain()).toBe(1)
    expect(await readTurn(database)).toEqual({ due_at: null, mailed_at: now() })
  })

  test('is the last one of a worker that stops meanwhile', async () => {
    const database = databaseOf()
    await fail(database)
    await fail(database, await addAccount())
    collect()
    const stopping = build(place, (...given) => {
      stopping.stop()
      return keyring.seal(...given)
    })
    expect(await stopping.drain()).toBe(1)
    expect(await countMails()).toBe(1)
    expect(await build(place).drain()).toBe(1)
  })

  test('tells nothing of a webhook that is switched off before, and ends', async () => {
    const database = databaseOf()
    const webhook = await fail(database)
    await build(place).drain()
    await database.pool.query('update webhook set is_actived = false where document_id = $1', [webhook])
    collect()
    expect(await build(place).drain()).toBe(0)
    expect(await readTurn(database)).toEqual({ due_at: null, mailed_at: now() })
    expect((await database.pool.query('select from webhook_mail_notice')).rows).toEqual([])
  })
})

test('what a cell told before its account came home is not told again', async () => {
  const [told, fresh] = [await fail(home), await fail(home)]
  await home.pool.query(
    `insert into webhook_mail_told (webhook, kind, noticed_at, told_at) values ($1, 'failing', $2, $2)`,
    [told, now()],
  )
  collect()
  expect(await build('home').drain()).toBe(1)
  const { rows } = await home.pool.query('select webhooks from webhook_mail_recipient')
  expect(rows).toEqual([{ webhooks: [fresh] }])
})

describe('the turn of an account in a cell', () => {
  test('is leased for a minute while home writes its mails', async () => {
    const webhook = await fail(cell)
    const noticedAt = now()
    collect()
    const lease = inMs(60_000)
    const slow = await inTransaction(home.db, async (holder) => {
      await holder
        .insertInto('webhook_mail_told')
        .values({ webhook, kind: 'failing', noticed_at: noticedAt, told_at: noticedAt })
        .execute()
      const draining = build('cell').drain()
      await waitFor('the lease', async () => (await readTurn(cell))?.due_at?.getTime() === lease.getTime())
      expect((await cell.pool.query('select is_taken, mailed_at from webhook_mail_notice')).rows).toEqual([
        { is_taken: true, mailed_at: null },
      ])
      clock.advance(59_999)
      expect(await build('cell').drain()).toBe(0)
      return { draining }
    })
    // The other process has told it.
    expect(await slow.draining).toBe(0)
    expect(
      (await cell.pool.query('select is_taken from webhook_mail_notice where mailed_at is not null')).rows,
    ).toEqual([{ is_taken: false }])
  })

  test('is taken by another process at the end of its lease', async () => {
    await fail(cell)
    collect()
    await build('cell').drain()
    await cell.pool.query('update webhook_mail_notice set mailed_at = null, is_taken = true')
    await cell.pool.query('update webhook_mail_turn set due_at = $1', [inMs(60_000)])
    await home.pool.query('delete from webhook_mail_told')
    clock.advance(59_999)
    expect(await build('cell').drain()).toBe(0)
    clock.advance(1)
    expect(await build('cell').drain()).toBe(1)
  })

  test('comes again 15 seconds after home wrote nothing, with its notices', async () => {
    await fail(cell)
    collect()
    const broken = build('cell', () => {
      throw new Error('home broke')
    })
    await expect(broken.drain()).rejects.toThrow('home broke')
    expect((await readTurn(cell)).due_at).toEqual(inMs(15_000))
    expect((await cell.pool.query('select is_taken, mailed_at from webhook_mail_notice')).rows).toEqual([
      { is_taken: false, mailed_at: null },
    ])
    clock.advance(14_999)
    expect(await build('cell').drain()).toBe(0)
    clock.advance(1)
    expect(await build('cell').drain()).toBe(1)
  })

  test.each([
    ['younger than home remembers', KEPT_MS - 1, 1],
    ['as old as home remembers', KEPT_MS, 0],
  ])('tells a notice that is %s (%i ms): %i', async (_name, ageMs, mails) => {
    await fail(cell)
    clock.advance(ageMs)
    expect(await build('cell').drain()).toBe(mails)
    expect((await readTurn(cell)).due_at).toBeNull()
  })

  test('names the account as home does', async () => {
    await fail(cell)
    await home.pool.query(`update account set name = 'Acme at home' where document_id = $1`, [account])
    collect()
    const texts: string[] = []
    const worker = build('cell', (text, context) => {
      texts.push(text)
      return keyring.seal(text, context)
    })
    expect(await worker.drain()).toBe(1)
    expect(texts[0]).toContain('Acme at home')
  })

  test('tells nobody once the account is deleted in home, and notes nothing there', async () => {
    await fail(cell)
    await home.pool.query('update account set deleted_at = now() where document_id = $1', [account])
    collect()
    expect(await build('cell').drain()).toBe(0)
    expect((await home.pool.query('select from webhook_mail_told')).rows).toEqual([])
    expect((await readTurn(cell)).due_at).toBeNull()
  })
})
