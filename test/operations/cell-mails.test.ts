import { randomUUID } from 'node:crypto'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type AccountId, buildIdMaker, type DispatchId, type UserId, type WebhookId } from '../../src/base/id.ts'
import { buildKeyring, type Keyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'
import { beginMove } from '../../src/carriage/move/move.store.ts'
import type { Place } from '../../src/carriage/move/move-plan.ts'
import { runMove } from '../../src/carriage/move/mover.ts'
import { loadMailTemplate } from '../../src/identity/mail/mail-template.ts'
import { buildMailWorker } from '../../src/identity/mail/mail-worker.ts'
import { findPlaces } from '../../src/postgres/cell/cell.store.ts'
import { openDatabase } from '../../src/postgres/statement/database.ts'
import { buildWebhookMailCheck } from '../../src/webhook/mail/mail-check.ts'
import { changeMailSetting } from '../../src/webhook/mail/mail-setting.store.ts'
import { noteMails } from '../../src/webhook/mail/notice.store.ts'
import type { MailKind } from '../../src/webhook/mail/notice.ts'
import { buildNoticeWorker, COLLECT_S, PACE_S } from '../../src/webhook/mail/notice-worker.ts'
import { TEST_SECRETS } from '../harness/app/test-secrets.ts'
import { addAccount, type MovedGround, openMovedGround } from '../harness/carriage/moved-account.ts'
import type { TestDatabase } from '../harness/database/database.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../harness/fakes/proxy.ts'
import { buildManualClock } from '../harness/run/manual-clock.ts'

const clock = buildManualClock()
const keyring = buildKeyring(TEST_SECRETS.secretKey, systemRandom)
const silent = pino({ enabled: false })
const KEPT_MS = 30 * 86_400_000

const stack = new AsyncDisposableStack()
let ground: MovedGround
/** Between the workers and home, or the first cell. */
let proxies: Record<'home' | 'c1', DatabaseProxy>
let pools: Record<'home' | 'c1', ReturnType<typeof openDatabase>>
let account: AccountId
let webhook: WebhookId
let boss: UserId

beforeAll(async () => {
  ground = stack.use(await openMovedGround())
  const open = async (place: Place) => {
    const proxy = stack.use(await startDatabaseProxy(ground.at(place).connectionString))
    const pool = openDatabase({
      ...{ connectionString: proxy.connectionString, size: 2 },
      applicationName: 'signalbox',
      onError: () => {},
    })
    stack.defer(() => pool.close())
    return { proxy, pool }
  }
  const [home, c1] = [await open(null), await open('c1')]
  proxies = { home: home.proxy, c1: c1.proxy }
  pools = { home: home.pool, c1: c1.pool }
  await ground
    .at(null)
    .pool.query(
      `insert into role (document_id, name, created_at, updated_at) values (gen_random_uuid(), 'account-admin', now(), now())`,
    )
})
afterAll(() => stack.disposeAsync())

beforeEach(async () => {
  await ground.at(null).pool.query('delete from mail_outbox')
  clock.advance(86_400_000)
  account = await addAccount(ground)
  await move('c1')
  boss = await addMember('account-admin')
  webhook = await addWebhook()
})

async function move(target: Place): Promise<void> {
  expect(await beginMove(ground.at(null).db, { account, target, drainSeconds: 600 })).toBeDefined()
  const deps = {
    open: async (place: Place) => ground.at(place).db,
    runner: 'test',
    sleep: () => new Promise<void>((resolve) => setImmediate(resolve)),
  }
  expect(await runMove({ ...deps, pageRows: 100 }, account)).toMatchObject({ kind: 'moved' })
}

async function addMember(role?: string): Promise<UserId> {
  const [user, member] = [randomUUID(), randomUUID()]
  const { pool } = ground.at(null)
  await pool.query(
    `insert into "user" (document_id, email, email_verified_at, created_at, updated_at) values ($1, $2, now(), now(), now())`,
    [user, `${user}@b.test`],
  )
  await pool.query(
    'insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, now(), now())',
    [member, account, user],
  )
  if (role)
    await pool.query(
      'insert into account_member_role (member, role, created_at) select $1, document_id, now() from role where name = $2',
      [member, role],
    )
  return user as UserId
}

async function addWebhook(contacts: readonly string[] = [], place: Place = 'c1'): Promise<WebhookId> {
  const id = randomUUID()
  await ground.at(place).pool.query(
    `insert into webhook (document_id, url, account, secret_encrypted, contacts, created_at, updated_at)
     values ($1, 'https://hooks.example/', $2, '', $3, now(), now())`,
    [id, account, contacts],
  )
  return id as WebhookId
}

const note = (kind: MailKind = 'failing', of = webhook, place: Place = 'c1') => {
  const notice = { kind, account, dispatch: randomUUID() as DispatchId, lastError: 'http_5xx', lastStatusCode: 500 }
  return noteMails(ground.at(place).db, [{ webhook: of, ...notice }], new Date(clock.now()))
}

/** The worker of a database, or of the first cell through the proxies. */
function worker(place: Place, options: { seal?: Keyring['seal'] } = {}) {
  const cell = place === null ? undefined : { db: place === 'c1' ? pools.c1.db : ground.at(place).db, keptMs: KEPT_MS }
  return buildNoticeWorker({
    ...{ db: pools.home.db, clock, logger: silent, canSendMail: true, isTrusted: () => true },
    ids: buildIdMaker(clock, systemRandom),
    keyring: { deriveKeys: keyring.deriveKeys, seal: options.seal ?? keyring.seal },
    ...{ baseUrl: () => 'https://signalbox.test', serviceName: 'Signalbox', ...(cell && { cell }) },
  })
}

async function drain(place: Place = 'c1', afterS = COLLECT_S): Promise<number> {
  clock.advance(afterS * 1_000)
  return worker(place).drain()
}

const rows = async (database: TestDatabase, text: string, values: unknown[] = []) =>
  (await database.pool.query(text, values)).rows

/** The recipients of the outbox of home. */
const recipients = async () =>
  (await rows(ground.at(null), 'select recipient from mail_outbox order by 1')).map(({ recipient }) => recipient)
const isTold = async (place: Place = 'c1') =>
  await rows(
    ground.at(place),
    `select kind, mailed_at is not null as told from webhook_mail_notice where account = $1`,
    [account],
  )

describe('mails about a webhook of an account in a cell', () => {
  test('go to its administrators and contacts by what home says of them, once an incident', async () => {
    const [contact, stopped, viewer] = [await addMember(), await addMember('account-admin'), await addMember()]
    await ground.at('c1').pool.query('update webhook set contacts = $2 where document_id = $1', [webhook, [contact]])
    await changeMailSetting(ground.at(null).db, stopped, { stoppedWebhooks: [webhook] }, new Date(clock.now()))
    await note()
    expect(await worker('c1').drain()).toBe(0)
    expect(await drain()).toBe(2)
    expect(await recipients()).toEqual([boss, contact].map((user) => `${user}@b.test`).sort())
    expect(await recipients()).not.toContain(`${viewer}@b.test`)
    expect(await rows(ground.at('c1'), 'select from mail_outbox')).toEqual([])
    expect(await isTold()).toEqual([{ kind: 'failing', told: true }])
    await note()
    expect(await drain('c1', PACE_S)).toBe(0)
    await note('recovered')
    expect(await drain('c1', PACE_S)).toBe(2)
    expect(await isTold()).toEqual([])
  })

  test('are not those of a webhook of another account in its cell, or of the same id in home', async () => {
    const [first, own] = [account, boss]
    account = await addAccount(ground)
    await move('c1')
    const other = await addMember('account-admin')
    const theirs = await addWebhook([own])
    await note('failing', theirs)
    expect(await drain()).toBe(1)
    expect(await recipients()).toEqual([`${other}@b.test`])
    account = first
  })

  test('are written once by processes that take the turn at the same time, and after each other', async () => {
    await note()
    clock.advance(COLLECT_S * 1_000)
    const written = await Promise.all([1, 2, 3].map(() => worker('c1').drain()))
    expect(written.reduce((sum, one) => sum + one)).toBe(1)
    await ground
      .at('c1')
      .pool.query(`update webhook_mail_turn set due_at = $2 where account = $1`, [account, new Date(clock.now())])
    await ground.at('c1').pool.query('update webhook_mail_notice set mailed_at = null where webhook = $1', [webhook])
    expect(await drain('c1', 0)).toBe(0)
    expect(await recipients()).toHaveLength(1)
  })

  test('wait while home is away, and then are written once', async () => {
    await note()
    proxies.home.set('refusing')
    try {
      await expect(drain()).rejects.toThrow()
      expect(await isTold()).toEqual([{ kind: 'failing', told: false }])
    } finally {
      proxies.home.set('open')
    }
    expect(await drain('c1', 15)).toBe(1)
    expect(await recipients()).toHaveLength(1)
  })

  test('that failed and recovered while home was away are none', async () => {
    await note()
    proxies.home.set('refusing')
    await expect(drain()).rejects.toThrow()
    proxies.home.set('open')
    await note('recovered')
    expect(await drain()).toBe(0)
    expect(await isTold()).toEqual([])
  })

  test('leave what came too late alone, and a notice that is older than home remembers is not told', async () => {
    await note()
    clock.advance(KEPT_MS)
    expect(await drain()).toBe(0)
    expect(await isTold()).toEqual([{ kind: 'failing', told: true }])
  })
})

/** Writes the mails in home, and dies before the cell knows: its connections break while home writes. */
async function dieBetween(): Promise<void> {
  clock.advance(COLLECT_S * 1_000)
  const dying = worker('c1', {
    seal: (...given) => {
      proxies.c1.set('refusing')
      return keyring.seal(...given)
    },
  })
  try {
    await expect(dying.drain()).rejects.toThrow()
  } finally {
    proxies.c1.set('open')
  }
  expect(await recipients()).toHaveLength(1)
  expect(await isTold()).toEqual([{ kind: 'failing', told: false }])
}

describe('when a process dies after home wrote the mails and before the cell knew', () => {
  beforeEach(async () => {
    await note()
    await dieBetween()
  })

  test('no other one writes them again, and what comes meanwhile gets a turn', async () => {
    const second = await addWebhook()
    await note('failing', second)
    expect(await drain('c1', PACE_S)).toBe(1)
    expect(await recipients()).toHaveLength(2)
    expect(await isTold()).toEqual([1, 2].map(() => ({ kind: 'failing', told: true })))
  })

  test('that it recovered is told all the same', async () => {
    await note('recovered')
    expect(await drain('c1', PACE_S)).toBe(1)
    expect(await isTold()).toEqual([])
  })

  test.each(['c2', null] as const)('they are not written again by %s, which the account moves to', async (target) => {
    await move(target)
    expect(await isTold(target)).toEqual([{ kind: 'failing', told: false }])
    expect(await drain(target, PACE_S)).toBe(0)
    expect(await drain('c1', 0)).toBe(0)
    expect(await recipients()).toHaveLength(1)
    expect(await isTold(target)).toEqual([{ kind: 'failing', told: true }])
    await note('recovered', webhook, target)
    expect(await drain(target, PACE_S)).toBe(1)
  })
})

test('an open notice moves with its account, and is told where it is', async () => {
  await note()
  await move('c2')
  expect(await drain()).toBe(0)
  expect(await drain('c2', 0)).toBe(1)
  expect(await isTold('c1')).toEqual([])
})

describe('a mail that waits in the outbox', () => {
  const sent: string[] = []
  const places = { home: null, c1: 'c1', c2: 'c2' }
  const mailer = () =>
    buildMailWorker({
      ...{ db: ground.at(null).db, clock, rest: clock.sleep, isTrusted: () => true, logger: silent, keyring },
      template: loadMailTemplate(undefined, {
        ...{ color: '#000', onColor: '#fff', darkColor: '#000', darkOnColor: '#fff', logo: null },
      }),
      transport: { send: async ({ to }) => void sent.push(to), close: () => {} },
      checks: {
        webhook: buildWebhookMailCheck({
          clock,
          within: (reading) => reading,
          findPlace: async (of) => {
            const cell = (await findPlaces(ground.at(null).db, [of])).get(of)?.cell ?? null
            return { cell, db: cell === 'c1' ? pools.c1.db : ground.at(places[(cell ?? 'home') as 'home']).db }
          },
        }),
      },
    })
  beforeEach(async () => {
    sent.length = 0
    const contact = await addMember()
    await ground.at('c1').pool.query('update webhook set contacts = $2 where document_id = $1', [webhook, [contact]])
    await note()
    expect(await drain()).toBe(2)
  })

  test('is sent to those whom the webhook in the cell still names', async () => {
    await ground.at('c1').pool.query(`update webhook set contacts = '{}' where document_id = $1`, [webhook])
    await mailer().drain()
    expect(sent).toEqual([`${boss}@b.test`])
  })

  test('is not sent when its webhook was deleted in the cell, or its reader stopped it in home', async () => {
    await changeMailSetting(ground.at(null).db, boss, { isStopped: true }, new Date(clock.now()))
    await ground.at('c1').pool.query('update webhook set deleted_at = now() where document_id = $1', [webhook])
    await mailer().drain()
    expect(sent).toEqual([])
  })

  test('waits while the cell is away, without counting as an attempt, and keeps no other waiting', async () => {
    proxies.c1.set('refusing')
    const started = mailer()
    for (let n = 0; n < 8; n += 1) {
      await started.drain()
      clock.advance(30_000)
    }
    proxies.c1.set('open')
    expect(sent).toEqual([])
    expect(await rows(ground.at(null), 'select distinct attempts from mail_outbox')).toEqual([{ attempts: 0 }])
    await started.drain()
    expect(sent).toHaveLength(2)
  })

  test('is judged where the account has moved', async () => {
    await move('c2')
    await ground.at('c2').pool.query(`update webhook set contacts = '{}' where document_id = $1`, [webhook])
    await mailer().drain()
    expect(sent).toEqual([`${boss}@b.test`])
  })
})
