import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId, UserId, WebhookId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import {
  changeLockedWebhook,
  findSecretsByUrl,
  findWebhook,
  insertWebhook,
  listExisting,
  lockFreeWebhooks,
  lockWebhookForChange,
  selectWebhooks,
  updateWebhook,
  type WebhookRecord,
} from './webhook.store.ts'
import { secretsIn } from './webhook-secret.store.ts'

const URL = 'https://subscriber.example.com/hook'

async function openWebhooks() {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const { db } = database
  const ledger = buildLedger(db, clock)
  const read = (id: WebhookId) =>
    db.selectFrom('webhook').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()
  const rename = (id: WebhookId) =>
    db.updateTable('webhook').set({ name: 'renamed' }).where('document_id', '=', id).execute()
  const end = (table: 'webhook' | 'account', id: string) =>
    db.updateTable(table).set({ deleted_at: ledger.now() }).where('document_id', '=', id).execute()
  const addUser = async () => {
    const id = ledger.ids.next<'user'>() as UserId
    const at = { created_at: ledger.now(), updated_at: ledger.now() }
    await db
      .insertInto('user')
      .values({ document_id: id, email: `${id}@example.test`, ...at })
      .execute()
    return id
  }
  return { db, clock, ledger, read, rename, end, addUser, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

const idsOf = (rows: readonly { id: WebhookId }[]) => rows.map(({ id }) => id)

test('a webhook that is locked stays as it was read until the transaction ends; one that is read does not', async () => {
  await using t = await openWebhooks()
  const id = await t.ledger.addWebhook()
  await whileHeld(
    t.db,
    (tx) => findWebhook(tx, id, { lock: true }),
    () => t.rename(id),
  )
  await inTransaction(t.db, async (tx) => {
    await findWebhook(tx, id)
    await t.rename(id)
  })
})

test('a deleted webhook is found by no read, locked or not, unless it is asked for, and is in no list', async () => {
  await using t = await openWebhooks()
  const [kept, gone] = [await t.ledger.addWebhook(), await t.ledger.addWebhook({ isDeleted: true })]
  for (const lock of [true, false]) {
    expect(await findWebhook(t.db, gone, { lock })).toBeUndefined()
    expect(await findWebhook(t.db, gone, { lock, withDeleted: true })).toMatchObject({ id: gone })
    expect(await findWebhook(t.db, kept, { lock })).toMatchObject({ id: kept })
  }
  expect((await selectWebhooks(t.db).execute()).map(({ id }) => id)).toEqual([kept])
  expect((await listExisting(t.db, { ids: [gone, t.ledger.ids.next<'webhook'>() as WebhookId] })).sort()).toEqual([
    gone,
  ])
})

test('a webhook is made in a living account alone, which is kept from being deleted meanwhile', async () => {
  await using t = await openWebhooks()
  const [living, gone] = [await t.ledger.addAccount(), await t.ledger.addAccount()]
  await t.end('account', gone)
  const types = [await t.ledger.addEventType('contract.create'), await t.ledger.addEventType('contract.delete')]
  await t.ledger.addEventType('contract.update')
  const insert = (account: AccountId | null, db = t.db) =>
    insertWebhook(db, {
      ...{ id: t.ledger.ids.next<'webhook'>() as WebhookId, url: URL, name: null, description: null, account },
      ...{
        isGlobal: account === null,
        resourceIds: null,
        headerNames: [],
        contacts: [],
        headersEncrypted: null,
        publicKey: null,
        signingKeyEncrypted: null,
        maxPerSecond: null,
        secretEncrypted: 'sealed',
        by: null,
        now: t.ledger.now(),
      },
      subscriptions: {
        ids: [types[1]!],
        names: ['contract.create'],
        links: [t.ledger.ids.next<'subscription'>(), t.ledger.ids.next<'subscription'>()],
      },
    })
  expect(await insert(gone)).toBeUndefined()
  const made = await insert(null)
  expect(made?.types.map(({ internal }) => internal)).toEqual(['contract.create', 'contract.delete'])
  const rows = await t.db.selectFrom('webhook_event').select('event').where('webhook', '=', made!.webhook.id).execute()
  expect(rows.map(({ event }) => event).sort()).toEqual([...types].sort())
  await whileHeld(
    t.db,
    (tx) => insert(living, tx),
    () => t.end('account', living),
  )
})

test('a change of scope locks the account that the webhook will have, and the webhook', async () => {
  await using t = await openWebhooks()
  const [own, next, gone] = [await t.ledger.addAccount(), await t.ledger.addAccount(), await t.ledger.addAccount()]
  await t.end('account', gone)
  const id = await t.ledger.addWebhook({ account: own })
  const global = await t.ledger.addWebhook()
  const keptOf = async (id: WebhookId, change: Parameters<typeof lockWebhookForChange>[2]) =>
    (await lockWebhookForChange(t.db, id, change))?.kept
  expect(await keptOf(id, {})).toBe(own)
  expect(await keptOf(id, { account: next })).toBe(next)
  expect(await keptOf(id, { account: null })).toBeNull()
  expect(await keptOf(id, { account: gone })).toBeNull()
  expect(await keptOf(id, { isGlobal: true, account: next })).toBeNull()
  expect(await keptOf(global, { account: next })).toBeNull()
  expect(await keptOf(global, { isGlobal: false, account: next })).toBe(next)
  const hold = (change: Parameters<typeof lockWebhookForChange>[2]) => (tx: typeof t.db) =>
    lockWebhookForChange(tx, id, change)
  await whileHeld(t.db, hold({ account: next }), () => t.end('account', next))
  await whileHeld(t.db, hold({}), () => t.rename(id))
  await t.end('webhook', id)
  expect(await lockWebhookForChange(t.db, id, {})).toBeUndefined()
})

test('a change writes what it names, of that webhook alone', async () => {
  await using t = await openWebhooks()
  const account = await t.ledger.addAccount()
  const [id, other] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
  const [before, untouched] = [await t.read(id), await t.read(other)]
  const by = await t.addUser()
  t.clock.advance(1000)
  const now = t.ledger.now()
  const scope = { isGlobal: false, account }
  const text = { url: 'https://other.example.com/', name: 'new', description: 'why' }
  const columns = { ...text, is_global: false, account, updated_by: by, updated_at: now }
  const changed = await changeLockedWebhook(
    t.db,
    (await findWebhook(t.db, id)) as WebhookRecord,
    { ...text, ...scope, by },
    now,
  )
  expect(await t.read(id)).toEqual({ ...before, ...columns })
  expect(changed).toEqual(await findWebhook(t.db, id))
  const state = { isActived: false, consecutiveFailures: 20, disabledAt: now, disabledReason: 'failures' }
  await updateWebhook(t.db, id, { ...state, secretEncrypted: 'sealed anew' }, now)
  const stateColumns = { is_actived: false, consecutive_failures: 20, disabled_at: now, disabled_reason: 'failures' }
  expect(await t.read(id)).toEqual({ ...before, ...columns, ...stateColumns, secret_encrypted: 'sealed anew' })
  expect(await t.read(other)).toEqual(untouched)
})

test('a webhook that leaves its owner takes no notice of a mail along; one that stays keeps them', async () => {
  await using t = await openWebhooks()
  const [own, next] = [await t.ledger.addAccount(), await t.ledger.addAccount()]
  const ids = await Promise.all(['moved', 'global', 'kept'].map(() => t.ledger.addWebhook({ account: own })))
  for (const id of ids)
    await sql`insert into webhook_mail_notice (webhook, kind, account, dispatch, is_queued, mailed_at, created_at)
      values (${id}, 'failing', ${own}, ${id}, true, now(), now()), (${id}, 'recovered', ${own}, ${id}, true, null, now())`.execute(
      t.db,
    )
  const by = await t.addUser()
  const changes = [{ account: next }, { isGlobal: true, account: null }, { name: 'kept' }]
  for (const [index, change] of changes.entries())
    await inTransaction(t.db, async (tx) => {
      const { webhook } = (await lockWebhookForChange(tx, ids[index]!, change))!
      await changeLockedWebhook(tx, webhook, { ...change, by }, t.ledger.now())
    })
  const { rows } = await sql<{ webhook: string }>`
    select distinct webhook from webhook_mail_notice where webhook = any(${ids}::uuid[])`.execute(t.db)
  expect(rows).toEqual([{ webhook: ids[2] }])
})

test('webhooks that another transaction has locked are passed over, and the others locked', async () => {
  await using t = await openWebhooks()
  const [held, free, other] = [await t.ledger.addWebhook(), await t.ledger.addWebhook(), await t.ledger.addWebhook()]
  await inTransaction(t.db, async (tx) => {
    await findWebhook(tx, held, { lock: true })
    expect(idsOf(await lockFreeWebhooks(t.db, { ids: [held, free] }))).toEqual([free])
  })
  await whileHeld(
    t.db,
    (tx) => lockFreeWebhooks(tx, { ids: [free] }),
    () => t.rename(free),
  )
  await inTransaction(t.db, async (tx) => {
    await lockFreeWebhooks(tx, { ids: [free] })
    await t.rename(other)
  })
})

test('the sink finds the secrets of living webhooks with this URL, the oldest first', async () => {
  await using t = await openWebhooks()
  const first = await t.ledger.addWebhook({ url: URL, secretEncrypted: 'a' })
  t.clock.advance(1)
  const second = await t.ledger.addWebhook({ url: URL, secretEncrypted: 'b' })
  await t.ledger.addWebhook({ url: URL, secretEncrypted: 'c', isDeleted: true })
  await t.ledger.addWebhook({ url: URL })
  await t.ledger.addWebhook({ url: `${URL}/other`, secretEncrypted: 'd' })
  expect(await findSecretsByUrl(t.db, URL)).toEqual([
    { id: first, secretEncrypted: 'a' },
    { id: second, secretEncrypted: 'b' },
  ])
})

test('stale secrets come in the order of ids, locked until they are sealed anew, each by itself', async () => {
  await using t = await openWebhooks()
  const ids = []
  for (const secretEncrypted of ['v1.a', 'v1.b', 'v1.c', 'v2.d', null])
    ids.push(await t.ledger.addWebhook({ secretEncrypted }))
  const stale = (after: string | null, limit = 10, db = t.db) =>
    secretsIn('secret_encrypted').list(db, { prefix: 'v2.', after, limit })
  const expected = ids.slice(0, 3)
  expect(idsOf(await stale(null))).toEqual(expected)
  expect(idsOf(await stale(expected[0]!))).toEqual(expected.slice(1))
  expect(idsOf(await stale(null, 2))).toEqual(expected.slice(0, 2))
  await whileHeld(
    t.db,
    (tx) => stale(null, 1, tx),
    () => t.rename(expected[0]!),
  )
  const before = await t.read(expected[1]!)
  await secretsIn('secret_encrypted').replace(t.db, expected[0]!, 'v2.a')
  expect(await t.read(expected[0]!)).toMatchObject({ secret_encrypted: 'v2.a', name: 'renamed' })
  expect(await t.read(expected[1]!)).toEqual(before)
})
