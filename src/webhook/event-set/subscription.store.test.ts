import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, EventTypeId, WebhookId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  countSubscriptions,
  findSubscription,
  insertSubscription,
  lockMove,
  removeSubscription,
  type SubscriptionId,
  selectSubscriptions,
} from './subscription.store.ts'
import { replaceEventSet } from './subscription.ts'

const times = { created_at: MADE_AT, updated_at: MADE_AT }
const now = madeAfter(5)

let account: AccountId
let types: EventTypeId[]
/** A webhook with a link to the first two types, and another one with links to the same. */
let hook: WebhookId
let beside: WebhookId
let links: SubscriptionId[]
let tests = 0
const { db, pool } = await openForFile(createTestDatabase())
beforeEach(async () => {
  tests += 1
  account = await buildIdentityRows(db).account()
  types = await Promise.all(['a', 'b', 'c'].map((name) => makeType(nameOf(name))))
  ;[hook, beside] = [await makeWebhook(), await makeWebhook()]
  links = []
  for (const webhook of [hook, beside]) for (const type of types.slice(0, 2)) links.push(await makeLink(webhook, type))
})

const nameOf = (name: string) => `t${tests}.${name}`

async function makeType(internal: string, more: object = {}): Promise<EventTypeId> {
  const id = newId<EventTypeId>()
  await db
    .insertInto('event')
    .values({ document_id: id, internal, account_scope: 'account', ...times, ...more })
    .execute()
  return id
}

async function makeWebhook(): Promise<WebhookId> {
  const id = newId<WebhookId>()
  await db
    .insertInto('webhook')
    .values({ document_id: id, url: 'https://a.test/', account, ...times })
    .execute()
  return id
}

async function makeLink(webhook: WebhookId, event: EventTypeId): Promise<SubscriptionId> {
  const id = newId<SubscriptionId>()
  await db
    .insertInto('webhook_event')
    .values({ document_id: id, webhook, event, ...times })
    .execute()
  return id
}

const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)
const read = (id: string) =>
  db.selectFrom('webhook_event').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()
const endLink = (id: string) =>
  db.updateTable('webhook_event').set({ deleted_at: MADE_AT }).where('document_id', '=', id).execute()
const deleteHook = () =>
  db.updateTable('webhook').set({ deleted_at: MADE_AT }).where('document_id', '=', hook).execute()
const ofHook = () => ({ id: hook, account, isGlobal: false })

test('a link is found with its webhook and its type, while both are there', async () => {
  expect(await findSubscription(db, links[1]!)).toMatchObject({
    ...{ subscription: { id: links[1], webhook: hook, event: types[1], createdAt: MADE_AT, deletedAt: null } },
    ...{ webhook: ofHook(), internal: nameOf('b') },
  })
  expect(await findSubscription(db, newId())).toBeUndefined()
  await endLink(links[1]!)
  expect(await findSubscription(db, links[1]!)).toBeUndefined()
  await deleteHook()
  expect(await findSubscription(db, links[0]!)).toBeUndefined()
  expect(await findSubscription(db, links[2]!)).toMatchObject({ webhook: { id: beside } })
})

test('the links of a list are those that were not removed, of webhooks that are there', async () => {
  const list = async () => {
    const listed = await selectSubscriptions(db).where('webhook', 'in', [hook, beside]).execute()
    return new Set(listed.map(({ id }) => id))
  }
  await endLink(links[0]!)
  expect(await list()).toEqual(new Set(links.slice(1)))
  await deleteHook()
  expect(await list()).toEqual(new Set(links.slice(2)))
})

test('the links of a webhook are counted without removed ones, those of others and the test event', async () => {
  const count = () => write((tx) => countSubscriptions(tx, hook))
  expect(await count()).toBe(2)
  const test = await db.selectFrom('event').select('document_id').where('internal', '=', 'webhook.test').execute()
  await makeLink(hook, (test[0]?.document_id as EventTypeId) ?? (await makeType('webhook.test')))
  expect(await count()).toBe(2)
  await endLink(links[0]!)
  expect(await count()).toBe(1)
})

describe('a new link', () => {
  const insert = (event: string, webhook: string = hook, id = newId<SubscriptionId>()) =>
    write((tx) => insertSubscription(tx, { id, webhook, event, now }))

  test('is of an active type and an existing webhook', async () => {
    const id = newId<SubscriptionId>()
    expect(await insert(types[2]!, hook, id)).toMatchObject({
      ...{ webhook: ofHook(), eventType: { internal: nameOf('c'), accountScope: 'account', isActived: true } },
      subscription: { id, webhook: hook, event: types[2], createdAt: now, updatedAt: now, deletedAt: null },
    })
    expect(await read(id)).toMatchObject({ webhook: hook, event: types[2] })
    const off = await makeType(nameOf('off'), { is_actived: false })
    expect(await insert(off)).toMatchObject({ eventType: { isActived: false }, subscription: undefined })
    expect(await insert(newId())).toEqual({ webhook: ofHook(), eventType: undefined, subscription: undefined })
    await deleteHook()
    expect(await insert(types[2]!)).toMatchObject({ webhook: undefined, subscription: undefined })
  })

  test('that exists is none, and that was removed is restored under its id', async () => {
    const [before, besideBefore] = [await read(links[0]!), await read(links[2]!)]
    expect((await insert(types[0]!)).subscription).toBeUndefined()
    expect(await read(links[0]!)).toEqual(before)
    await endLink(links[0]!)
    expect((await insert(types[0]!)).subscription).toMatchObject({ id: links[0], deletedAt: null, updatedAt: now })
    expect(await read(links[0]!)).toEqual({ ...before, updated_at: now })
    expect(await read(links[2]!)).toEqual(besideBefore)
  })
})

describe('a link that is removed', () => {
  const remove = (id: string, kept = 'none') => write((tx) => removeSubscription(tx, id, { kept, now }))

  test('is so once, alone and at its instant', async () => {
    const [before, other] = [await read(links[0]!), await read(links[1]!)]
    expect(await remove(links[0]!)).toMatchObject({
      ...{ subscription: { id: links[0], deletedAt: now, updatedAt: now }, webhook: ofHook() },
    })
    expect(await read(links[0]!)).toEqual({ ...before, deleted_at: now, updated_at: now })
    expect(await read(links[1]!)).toEqual(other)
    expect(await remove(links[0]!)).toBeUndefined()
    expect(await remove(newId())).toBeUndefined()
  })

  test('is not of the kept type, nor of a deleted webhook', async () => {
    expect(await remove(links[0]!, nameOf('a'))).toBeUndefined()
    await deleteHook()
    expect(await remove(links[0]!)).toBeUndefined()
    expect((await read(links[0]!)).deleted_at).toBeNull()
  })

  test('waits for another change of its webhook', async () => {
    const removed = await whileHeld(
      db,
      async (tx) => {
        await removeSubscription(tx, links[0]!, { kept: 'none', now: MADE_AT })
        // No other webhook waits.
        const free = 'select document_id from webhook where document_id <> $1 for update nowait'
        expect((await pool.query(free, [hook])).rows.length).toBeGreaterThan(0)
      },
      () => remove(links[1]!),
    )
    expect(removed).toMatchObject({ subscription: { id: links[1] } })
  })
})

describe('a move of a link', () => {
  const lock = (id: string, event: string) => write((tx) => lockMove(tx, id, event))

  test('has both types, and the link to the new one where there is one', async () => {
    expect(await lock(links[0]!, types[2]!)).toMatchObject({
      ...{ subscription: { id: links[0] }, webhook: ofHook(), internal: nameOf('a') },
      eventType: { internal: nameOf('c') },
    })
    expect((await lock(links[0]!, types[2]!))?.present).toBeUndefined()
    const present = { id: links[1], createdAt: MADE_AT, isDeleted: false }
    expect(await lock(links[0]!, types[1]!)).toMatchObject({ eventType: { internal: nameOf('b') }, present })
    await endLink(links[1]!)
    expect((await lock(links[0]!, types[1]!))?.present).toEqual({ ...present, isDeleted: true })
    expect(await lock(links[0]!, newId())).toMatchObject({ subscription: { id: links[0] }, eventType: undefined })
  })

  test('is none of a removed link, or of a deleted webhook', async () => {
    expect(await lock(newId(), types[2]!)).toBeUndefined()
    await endLink(links[0]!)
    expect(await lock(links[0]!, types[2]!)).toBeUndefined()
    await deleteHook()
    expect(await lock(links[1]!, types[2]!)).toBeUndefined()
  })
})

test('a set is not replaced before the catalogue has the event that each webhook has', async () => {
  const ids = { next: () => newId() } as never
  const rename = (from: string, to: string) =>
    db.updateTable('event').set({ internal: to }).where('internal', '=', from).execute()
  const replace = () => write((tx) => replaceEventSet({ ids }, tx, hook, { events: [nameOf('c')], now }))
  await rename('webhook.test', nameOf('renamed'))
  await expect(replace()).rejects.toMatchObject({ code: 'dependency_unavailable' })
  expect((await read(links[0]!)).deleted_at).toBeNull()
  await rename(nameOf('renamed'), 'webhook.test')
})
