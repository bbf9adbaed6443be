import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, EventTypeId, WebhookId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { changeSubscriptions, findEventSet, lockEventSet } from './event-set.store.ts'
import type { SubscriptionId } from './subscription.store.ts'

const times = { created_at: MADE_AT, updated_at: MADE_AT }

let account: AccountId
/** Event types, in the order of their names, which begin with the number of the test. */
let types: { id: EventTypeId; internal: string }[]
/** The webhook under test, with links to the first two types, and another one with links to all but the first. */
let hook: WebhookId
let beside: WebhookId
let tests = 0
const { db } = await openForFile(createTestDatabase())
beforeEach(async () => {
  tests += 1
  account = await buildIdentityRows(db).account()
  types = await Promise.all(['a', 'b', 'c', 'd'].map((name) => makeType(`t${tests}.${name}`)))
  ;[hook, beside] = [await makeWebhook(), await makeWebhook()]
  for (const { id } of types.slice(0, 2)) await makeLink(hook, id)
  for (const { id } of types.slice(1)) await makeLink(beside, id)
})

async function makeType(internal: string) {
  const id = newId<EventTypeId>()
  await db
    .insertInto('event')
    .values({ document_id: id, internal, account_scope: 'account', ...times })
    .execute()
  return { id, internal }
}

async function makeWebhook(): Promise<WebhookId> {
  const id = newId<WebhookId>()
  await db
    .insertInto('webhook')
    .values({ document_id: id, url: 'https://a.test/', account, ...times })
    .execute()
  return id
}

async function makeLink(webhook: WebhookId, event: EventTypeId, deletedAt: Date | null = null) {
  const row = { document_id: newId<SubscriptionId>(), webhook, event, deleted_at: deletedAt, ...times }
  await db.insertInto('webhook_event').values(row).execute()
  return row.document_id
}

const listLinks = async (webhook: WebhookId) => {
  const rows = await db.selectFrom('webhook_event').selectAll().where('webhook', '=', webhook).execute()
  const names = new Map(types.map(({ id, internal }) => [id as string, internal.split('.')[1]!]))
  return rows
    .map((row) => ({
      name: names.get(row.event)!,
      id: row.document_id,
      updated: row.updated_at,
      deleted: row.deleted_at,
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}
const namesOf = (set: { events: readonly { internal: string }[] } | undefined) =>
  set?.events.map(({ internal }) => internal.split('.')[1])
const deleteWebhook = () =>
  db.updateTable('webhook').set({ deleted_at: MADE_AT }).where('document_id', '=', hook).execute()

describe('the set of a webhook', () => {
  test('has its own event types by name, and none of a deleted link', async () => {
    const found = await findEventSet(db, hook)
    expect(found?.webhook).toEqual({ id: hook, account, isGlobal: false })
    expect(found?.events).toMatchObject(types.slice(0, 2))
    await db.updateTable('webhook_event').set({ deleted_at: MADE_AT }).where('event', '=', types[0]!.id).execute()
    expect(namesOf(await findEventSet(db, hook))).toEqual(['b'])
    expect(namesOf(await findEventSet(db, beside))).toEqual(['b', 'c', 'd'])
  })

  test('is empty without links, and missing for a deleted webhook', async () => {
    await db.deleteFrom('webhook_event').where('webhook', '=', hook).execute()
    expect(await findEventSet(db, hook)).toEqual({ webhook: { id: hook, account, isGlobal: false }, events: [] })
    await deleteWebhook()
    expect(await findEventSet(db, hook)).toBeUndefined()
    expect(await findEventSet(db, newId())).toBeUndefined()
  })
})

describe('the set that is locked for a change', () => {
  const lock = (change: { names?: string[]; ids?: string[] } = {}) =>
    inTransaction(db, (tx) => lockEventSet(tx, { webhook: hook, names: [], ids: [], ...change }))
  const statesOf = (set: Awaited<ReturnType<typeof lock>>) =>
    set?.events.map(({ internal, isSubscribed }) => [internal.split('.')[1], isSubscribed])

  test('has the types that are named beside its own, each with its state', async () => {
    expect(statesOf(await lock())).toEqual([
      ['a', true],
      ['b', true],
    ])
    const asked = { names: [types[3]!.internal, types[0]!.internal], ids: [types[2]!.id, newId()] }
    expect(statesOf(await lock(asked))).toEqual([
      ['a', true],
      ['b', true],
      ['c', false],
      ['d', false],
    ])
    await db.updateTable('webhook_event').set({ deleted_at: MADE_AT }).where('webhook', '=', hook).execute()
    expect(statesOf(await lock({ names: [types[1]!.internal] }))).toEqual([['b', false]])
    expect(await lock()).toEqual({ webhook: { id: hook, account, isGlobal: false }, events: [] })
  })

  test('is missing for a deleted webhook', async () => {
    await deleteWebhook()
    expect(await lock()).toBeUndefined()
  })

  test('waits for another change of the webhook, and reads behind it', async () => {
    const changed = await whileHeld(
      db,
      async (tx) => {
        await lockEventSet(tx, { webhook: hook, names: [], ids: [] })
        const add = [{ id: newId<SubscriptionId>(), event: types[2]!.id }]
        await changeSubscriptions(tx, { webhook: hook, remove: [types[0]!.id], add, now: madeAfter(5) })
      },
      () => lock(),
    )
    expect(statesOf(changed)).toEqual([
      ['b', true],
      ['c', true],
    ])
  })
})

describe('a change', () => {
  const change = (remove: EventTypeId[], add: EventTypeId[]) => {
    const ids = add.map((event) => ({ id: newId<SubscriptionId>(), event }))
    const input = { webhook: hook, remove, add: ids, now: madeAfter(5) }
    return inTransaction(db, (tx) => changeSubscriptions(tx, input)).then(() => ids)
  }

  test('removes links of the webhook alone, at its instant', async () => {
    const before = await listLinks(beside)
    await change([types[0]!.id, types[1]!.id, types[2]!.id], [])
    const removed = { updated: madeAfter(5), deleted: madeAfter(5) }
    expect(await listLinks(hook)).toMatchObject([
      { name: 'a', ...removed },
      { name: 'b', ...removed },
    ])
    expect(await listLinks(beside)).toEqual(before)
  })

  test('leaves a link that is removed already as it was', async () => {
    await db.updateTable('webhook_event').set({ deleted_at: MADE_AT }).where('webhook', '=', hook).execute()
    const before = await listLinks(hook)
    await change([types[0]!.id], [])
    expect(await listLinks(hook)).toEqual(before)
  })

  test('adds, restores a removed link under its id, and leaves an existing one', async () => {
    const [a, b] = (await listLinks(hook)).map(({ id }) => ({ id })) as [{ id: string }, { id: string }]
    await db.updateTable('webhook_event').set({ deleted_at: MADE_AT }).where('document_id', '=', b.id).execute()
    const [, , c] = await change([], [types[0]!.id, types[1]!.id, types[2]!.id])
    expect(await listLinks(hook)).toEqual([
      { name: 'a', id: a.id, updated: MADE_AT, deleted: null },
      { name: 'b', id: b.id, updated: madeAfter(5), deleted: null },
      { name: 'c', id: c!.id, updated: madeAfter(5), deleted: null },
    ])
    const { created_at } = await db
      .selectFrom('webhook_event')
      .select('created_at')
      .where('document_id', '=', c!.id)
      .executeTakeFirstOrThrow()
    expect(created_at).toEqual(madeAfter(5))
  })

  test('of nothing is no statement', async () => {
    const closed = {} as Database
    await changeSubscriptions(closed, { webhook: hook, remove: [], add: [], now: madeAfter(5) })
  })
})
