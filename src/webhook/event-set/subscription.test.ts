import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestApp, type TestAnswer, type TestApp } from '../../../test/harness/app/app.ts'
import { untilWaiting } from '../../../test/harness/plan/lock-waits.ts'
import { followCall } from '../../../test/harness/run/trail.ts'
import type { AccountId, EventTypeId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { findSubscription, lockMove } from './subscription.store.ts'
import { findWarnings, planEventSet, replaceEventSet } from './subscription.ts'

const WEBHOOKS = '/api/v3/webhook/webhook'
const LINKS = '/api/v3/webhook/webhook-event'
const UNKNOWN_ID = '01990000-0000-7000-8000-000000000000'
const OTHER_UNKNOWN_ID = '01990000-0000-7000-8000-000000000001'

let app: TestApp
let account: AccountId
/** The ids of the event types by name. */
const idOf: Record<string, string> = {}

beforeAll(async () => {
  app = await createTestApp()
  account = (await app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
  const { rows } = await app.database.pool.query('select internal, document_id from event')
  for (const row of rows) idOf[row.internal] = row.document_id
})
afterAll(() => app[Symbol.asyncDispose]())

const ids = (...names: string[]) => names.map((name) => idOf[name])

async function createWebhook(body: object = {}): Promise<string> {
  const answer = await app.admin('POST', WEBHOOKS, { url: 'https://hooks.example.com/', account, ...body })
  return answer.body.data.document_id
}

const putSet = (webhook: string, events: unknown) => app.admin('PUT', `${WEBHOOKS}/${webhook}/events`, { events })

const namesOf = (answer: TestAnswer) => answer.body.data.events.map((event: { internal: string }) => event.internal)

const readNames = async (webhook: string) => namesOf(await app.admin('GET', `${WEBHOOKS}/${webhook}/events`))

const createLink = async (webhook: string, name: string) =>
  (await app.admin('POST', LINKS, { webhook, event: idOf[name] })).body.data

const readLinks = async (webhook: string) =>
  (
    await app.database.pool.query(
      `select l.document_id as id, e.internal as event, l.created_at, l.updated_at, l.deleted_at
       from webhook_event l join event e on e.document_id = l.event where l.webhook = $1 order by e.internal`,
      [webhook],
    )
  ).rows

async function expectRefusal(call: () => Promise<TestAnswer>, status: number, code: string) {
  const { answer, events, audit } = await followCall(app, call)
  expect(answer.status, JSON.stringify(answer.body)).toBe(status)
  expect(answer.body.code).toBe(code)
  expect(events).toEqual([])
  expect(audit.map(({ outcome }) => outcome)).toEqual(status === 403 ? ['failure'] : [])
  return answer.body
}

describe('the plan of an event set', () => {
  const id = (n: number) => `type-${n}` as EventTypeId
  const always = id(0)
  const some = fc.array(fc.nat(8).map(id))

  test('ends in exactly what is wanted, and webhook.test', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(8).map(id)), some, (current, wanted) => {
        const { add, remove } = planEventSet(current, wanted, always)
        const after = [...current.filter((item) => !remove.includes(item)), ...add]
        expect(new Set(after)).toEqual(new Set([always, ...wanted]))
        expect(after).toHaveLength(new Set(after).size)
      }),
    )
  })

  test('touches nothing that is there and stays, and never removes webhook.test', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(8).map(id)), some, (current, wanted) => {
        const { add, remove } = planEventSet(current, wanted, always)
        expect(add.filter((addition) => current.includes(addition))).toEqual([])
        expect(remove.filter((item) => wanted.includes(item) || item === always)).toEqual([])
      }),
    )
  })
})

test('only what has no owner warns, only an account webhook is warned, and never of webhook.test', () => {
  const events = [
    { internal: 'webhook.test', accountScope: 'none', deprecationRemedy: null },
    { internal: 'contract.create', accountScope: 'account', deprecationRemedy: null },
    { internal: 'role.create', accountScope: 'none', deprecationRemedy: null },
  ] as const
  expect(findWarnings({ isGlobal: true }, events)).toEqual([])
  expect(findWarnings({ isGlobal: false }, events)).toMatchObject([{ event: 'role.create', code: 'never_fires' }])
})

describe('replacing the event set', () => {
  test('emits webhook-event.set once, about the webhook, with the path that reads the set', async () => {
    const webhook = await createWebhook()
    const { answer, events, audit } = await followCall(app, () => putSet(webhook, ids('contract.create')))
    expect(answer.status).toBe(200)
    expect(answer.body.data.webhook).toBe(webhook)
    const url = `${WEBHOOKS}/${webhook}/events`
    expect(events).toEqual([{ event: 'webhook-event.set', account, resource_id: webhook, url, is_purge: false }])
    expect(audit).toMatchObject([
      { action: 'webhook-event.set', outcome: 'success', user: app.adminId, account, target: webhook },
    ])
  })

  test('answers webhook.test first and the rest by name, whatever the order and the repetitions of the body', async () => {
    const webhook = await createWebhook()
    const wanted = ids('contract.update', 'account.update', 'contract.update', 'webhook.test', 'contract.create')
    expect(namesOf(await putSet(webhook, wanted))).toEqual([
      'webhook.test',
      'account.update',
      'contract.create',
      'contract.update',
    ])
    expect(await readLinks(webhook)).toHaveLength(4)
  })

  test('is of a webhook that is there: once that is deleted, nothing is read or changed', async () => {
    const webhook = await createWebhook()
    await putSet(webhook, ids('contract.create'))
    const before = await readLinks(webhook)
    await app.admin('DELETE', `${WEBHOOKS}/${webhook}`)
    await expectRefusal(() => putSet(webhook, ids('contract.update')), 404, 'not_found')
    await expectRefusal(() => app.admin('GET', `${WEBHOOKS}/${webhook}/events`), 404, 'not_found')
    expect(await readLinks(webhook)).toHaveLength(before.length)
  })

  test('names every id that is no event type, by its place, and changes nothing', async () => {
    const webhook = await createWebhook()
    await putSet(webhook, ids('contract.create'))
    const wanted = [UNKNOWN_ID, idOf['contract.update'], OTHER_UNKNOWN_ID]
    const problem = await expectRefusal(() => putSet(webhook, wanted), 422, 'validation_failed')
    expect(problem.errors).toMatchObject([
      { path: 'events.0', code: 'unknown_event' },
      { path: 'events.2', code: 'unknown_event' },
    ])
    expect(await readNames(webhook)).toEqual(['webhook.test', 'contract.create'])
  })

  test.each([
    ['an empty list', { events: [] }, 'events'],
    ['no list', {}, 'events'],
    ['null', { events: null }, 'events'],
    ['an empty entry', { events: [''] }, 'events.0'],
    ['a number', { events: [7] }, 'events.0'],
    ['1,001 ids', { events: Array(1001).fill(UNKNOWN_ID) }, 'events'],
    ['an unknown member', { events: [UNKNOWN_ID], more: true }, 'more'],
  ])('refuses %s', async (_what, body, path) => {
    const webhook = await createWebhook()
    const call = () => app.admin('PUT', `${WEBHOOKS}/${webhook}/events`, body)
    expect((await expectRefusal(call, 422, 'validation_failed')).errors).toMatchObject([{ path }])
  })

  test('takes names as well as ids, and both for one event type', async () => {
    const webhook = await createWebhook()
    const mixed = ['contract.update', ...ids('contract.create'), 'contract.create', 'webhook.test']
    expect(namesOf(await putSet(webhook, mixed))).toEqual(['webhook.test', 'contract.create', 'contract.update'])
    expect((await putSet(webhook, ids('contract.update', 'contract.create'))).body.message).toContain('unchanged')
  })

  test.each([
    ['a name that no event type has', 'contract.paint'],
    ['a name in capitals', 'Contract.Create'],
    ['an id in capitals', UNKNOWN_ID.toUpperCase().replace('0199', 'ABCD')],
    ['what is neither a name nor an id', "x' or true"],
  ])('refuses %s at its place', async (_what, entry) => {
    const webhook = await createWebhook()
    const problem = await expectRefusal(() => putSet(webhook, ['contract.create', entry]), 422, 'validation_failed')
    expect(problem.errors).toMatchObject([{ path: 'events.1', code: 'unknown_event' }])
    expect(await readNames(webhook)).toEqual(['webhook.test'])
  })

  test('takes 1,000 ids', async () => {
    expect((await putSet(await createWebhook(), Array(1000).fill(idOf['contract.create']))).status).toBe(200)
  })

  test('keeps a deactivated event type that was there, and takes it nowhere new', async () => {
    const had = await createWebhook()
    await putSet(had, ids('contract.delete'))
    await app.database.pool.query(`update event set is_actived = false where internal = 'contract.delete'`)
    try {
      expect((await putSet(had, ids('contract.delete', 'contract.create'))).status).toBe(200)
      const never = await createWebhook()
      const problem = await expectRefusal(() => putSet(never, ids('contract.delete')), 422, 'validation_failed')
      expect(problem.errors).toMatchObject([{ path: 'events.0', code: 'event_deactivated' }])
      const create = () => app.admin('POST', LINKS, { webhook: never, event: idOf['contract.delete'] })
      const refused = await expectRefusal(create, 422, 'validation_failed')
      expect(refused.errors).toMatchObject([{ path: 'event', code: 'event_deactivated' }])
    } finally {
      await app.database.pool.query(`update event set is_actived = true where internal = 'contract.delete'`)
    }
  })

  test('revives the link that was deleted, under its old id, and leaves the present ones untouched', async () => {
    const webhook = await createWebhook()
    await putSet(webhook, ids('contract.create', 'contract.update'))
    const first = await readLinks(webhook)
    app.clock.advance(1_000)
    await putSet(webhook, ids('contract.update'))
    app.clock.advance(1_000)
    await putSet(webhook, ids('contract.create', 'contract.update'))
    const last = await readLinks(webhook)
    expect(last.map(({ id, event, deleted_at }) => ({ id, event, deleted_at }))).toEqual(
      first.map(({ id, event }) => ({ id, event, deleted_at: null })),
    )
    const updated = (rows: typeof last, event: string) => rows.find((row) => row.event === event)
    expect(updated(last, 'contract.update')).toEqual(updated(first, 'contract.update'))
    expect(updated(last, 'contract.create').updated_at.getTime()).toBe(app.clock.now())
  })

  test('warns an account webhook of what never fires, in data and message, and still takes it', async () => {
    const webhook = await createWebhook()
    const { body } = await putSet(webhook, ids('role.create', 'contract.create'))
    expect(body.data.warnings).toMatchObject([{ event: 'role.create', code: 'never_fires' }])
    expect(body.message).toContain('role.create')
    expect(await readNames(webhook)).toContain('role.create')
    const global = await createWebhook({ is_global: true })
    expect((await putSet(global, ids('role.create'))).body.data.warnings).toEqual([])
  })

  test('of one webhook from two sides at once ends in one of the two sets', async () => {
    const webhook = await createWebhook()
    const sets = [ids('contract.create', 'contract.update'), ids('contract.delete')]
    const answers = await Promise.all(sets.map((events) => putSet(webhook, events)))
    expect(answers.map((answer) => answer.status)).toEqual([200, 200])
    expect([
      ['webhook.test', 'contract.create', 'contract.update'],
      ['webhook.test', 'contract.delete'],
    ]).toContainEqual(await readNames(webhook))
  })

  test('tells by how many it has grown', async () => {
    const webhook = await createWebhook()
    const growthOf = async (...names: string[]) => {
      const events = ids(...names) as string[]
      const input = { events, now: new Date(app.clock.now()) }
      const { growth, isChanged } = await inTransaction(app.database.db, (tx) =>
        replaceEventSet(app.app, tx, webhook, input),
      )
      return [growth, isChanged]
    }
    expect(await growthOf('contract.create', 'contract.update')).toEqual([2, true])
    expect(await growthOf('contract.create', 'contract.delete')).toEqual([0, true])
    expect(await growthOf('contract.create')).toEqual([-1, true])
    expect(await growthOf('contract.create')).toEqual([0, false])
  })

  test('that waits for another one of the same webhook replaces what that one has written', async () => {
    const webhook = await createWebhook()
    const { db } = app.database
    const replaced = Promise.withResolvers<void>()
    const mayCommit = Promise.withResolvers<void>()
    const replacing = inTransaction(db, async (tx) => {
      const events = ids('contract.create', 'contract.update') as string[]
      await replaceEventSet(app.app, tx, webhook, { events, now: new Date(app.clock.now()) })
      replaced.resolve()
      await mayCommit.promise
    })
    await replaced.promise
    const waiting = putSet(webhook, ids('contract.delete'))
    await untilWaiting(db, 1)
    mayCommit.resolve()
    await replacing
    expect(namesOf(await waiting)).toEqual(['webhook.test', 'contract.delete'])
    expect(await readNames(webhook)).toEqual(['webhook.test', 'contract.delete'])
  })
})

describe('a link of its own', () => {
  test('is created with a Location, emits once, and is read and listed as it is', async () => {
    const webhook = await createWebhook()
    const { answer, events, audit } = await followCall(app, () =>
      app.admin('POST', LINKS, { webhook, event: idOf['contract.create'] }),
    )
    expect(answer.status).toBe(201)
    const { warnings, ...row } = answer.body.data
    expect(warnings).toEqual([])
    const path = `${LINKS}/${row.document_id}`
    expect(answer.headers.location).toBe(path)
    expect(events).toEqual([
      { event: 'webhook-event.create', account, resource_id: row.document_id, url: path, is_purge: false },
    ])
    expect(audit).toMatchObject([{ action: 'webhook-event.create', target: row.document_id, account }])
    expect((await app.admin('GET', path)).body.data).toEqual(row)
    const list = await app.admin('GET', `${LINKS}?filters=webhook|eq|${webhook}&filters=event|eq|${row.event}`)
    expect(list.body.data).toEqual([row])
  })

  test('is there once: a second one is a conflict, and a replay under one key is none', async () => {
    const webhook = await createWebhook()
    const body = { webhook, event: idOf['contract.create'] }
    const headers = { 'idempotency-key': `link-${webhook}` }
    const first = await app.admin('POST', LINKS, body, headers)
    const again = await app.admin('POST', LINKS, body, headers)
    expect(again.headers['idempotency-replayed']).toBe('true')
    expect(again.body).toEqual(first.body)
    await expectRefusal(() => app.admin('POST', LINKS, body), 409, 'conflict')
  })

  test('refuses what it cannot join', async () => {
    const webhook = await createWebhook()
    const gone = await createWebhook()
    await app.admin('DELETE', `${WEBHOOKS}/${gone}`)
    const event = idOf['contract.create']
    for (const [body, path] of [
      [{ webhook: UNKNOWN_ID, event }, 'webhook'],
      [{ webhook: gone, event }, 'webhook'],
      [{ webhook, event: UNKNOWN_ID }, 'event'],
      [{ webhook, event: 'contract.create' }, 'event'],
      [{ webhook, event: null }, 'event'],
      [{ webhook }, 'event'],
      [{ event }, 'webhook'],
      [{ webhook, event, is_actived: true }, 'is_actived'],
    ] as const) {
      const problem = await expectRefusal(() => app.admin('POST', LINKS, body), 422, 'validation_failed')
      expect(problem.errors).toMatchObject([{ path }])
    }
  })

  test('moves to another event type, as the link to that one, and back to its old id', async () => {
    const webhook = await createWebhook()
    const link = await createLink(webhook, 'contract.create')
    const { answer, events } = await followCall(app, () =>
      app.admin('PATCH', `${LINKS}/${link.document_id}`, { event: idOf['contract.update'] }),
    )
    const moved = answer.body.data
    expect(moved).toMatchObject({ webhook, event: idOf['contract.update'], deleted_at: null })
    expect(events).toMatchObject([{ event: 'webhook-event.update', account, resource_id: moved.document_id }])
    expect(await readNames(webhook)).toEqual(['webhook.test', 'contract.update'])
    await expectRefusal(() => app.admin('GET', `${LINKS}/${link.document_id}`), 404, 'not_found')
    const back = await app.admin('PATCH', `${LINKS}/${moved.document_id}`, { event: idOf['contract.create'] })
    expect(back.body.data.document_id).toBe(link.document_id)
  })

  test('is found with its own webhook, beside those of others', async () => {
    for (const webhook of [await createWebhook(), await createWebhook()]) {
      const { document_id: id } = await createLink(webhook, 'contract.create')
      expect(await findSubscription(app.database.db, id)).toMatchObject({
        ...{ subscription: { id, webhook }, webhook: { id: webhook }, internal: 'contract.create' },
      })
    }
  })

  test('of a deleted webhook does not move', async () => {
    const webhook = await createWebhook()
    const link = await createLink(webhook, 'contract.create')
    const move = () => lockMove(app.database.db, link.document_id, idOf['contract.update'] as string)
    expect(await move()).toMatchObject({ subscription: { id: link.document_id }, internal: 'contract.create' })
    await app.database.pool.query('update webhook set deleted_at = now() where document_id = $1', [webhook])
    expect(await move()).toBeUndefined()
  })

  test('moved to where it is stays as it is, and still warns', async () => {
    const webhook = await createWebhook()
    const link = await createLink(webhook, 'role.create')
    app.clock.advance(1_000)
    const { body } = await app.admin('PATCH', `${LINKS}/${link.document_id}`, { event: idOf['role.create'] })
    expect(body.data).toEqual(link)
    expect(body.data.warnings).toMatchObject([{ code: 'never_fires' }])
  })

  test('moves neither to what is subscribed already nor to what is no event type, and then still stands', async () => {
    const webhook = await createWebhook()
    const link = await createLink(webhook, 'contract.create')
    await createLink(webhook, 'contract.update')
    const move = (event: unknown) => () => app.admin('PATCH', `${LINKS}/${link.document_id}`, { event })
    await expectRefusal(move(idOf['contract.update']), 409, 'conflict')
    for (const event of [UNKNOWN_ID, null, 'x']) await expectRefusal(move(event), 422, 'validation_failed')
    expect(await readNames(webhook)).toEqual(['webhook.test', 'contract.create', 'contract.update'])
  })

  test('to webhook.test neither goes nor moves; an unknown event type is said first', async () => {
    const webhook = await createWebhook()
    const [test] = await readLinks(webhook)
    const path = `${LINKS}/${test.id}`
    await expectRefusal(() => app.admin('DELETE', path), 409, 'conflict')
    await expectRefusal(() => app.admin('PATCH', path, { event: idOf['contract.create'] }), 409, 'conflict')
    await expectRefusal(() => app.admin('PATCH', path, { event: UNKNOWN_ID }), 422, 'validation_failed')
    expect(await readNames(webhook)).toEqual(['webhook.test'])
  })

  test('goes once, softly, and emits once, from two sides at once too', async () => {
    const webhook = await createWebhook()
    const link = await createLink(webhook, 'contract.create')
    const path = `${LINKS}/${link.document_id}`
    let statuses: number[] = []
    const { events, audit } = await followCall(app, async () => {
      const answers = await Promise.all([app.admin('DELETE', path), app.admin('DELETE', path)])
      statuses = answers.map((answer) => answer.status).sort()
      return answers[0]
    })
    expect(statuses).toEqual([200, 404])
    expect(events).toEqual([
      { event: 'webhook-event.delete', account, resource_id: link.document_id, url: null, is_purge: false },
    ])
    expect(audit).toHaveLength(1)
    const [row] = (await readLinks(webhook)).filter((link) => link.event === 'contract.create')
    expect(row.deleted_at.getTime()).toBe(app.clock.now())
  })

  test('moved to two places at once ends in one of them', async () => {
    const webhook = await createWebhook()
    const link = await createLink(webhook, 'contract.create')
    const move = (name: string) => app.admin('PATCH', `${LINKS}/${link.document_id}`, { event: idOf[name] })
    const answers = await Promise.all([move('contract.update'), move('contract.delete')])
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 404])
    expect(await readNames(webhook)).toHaveLength(2)
  })

  test('of a deleted webhook is no more', async () => {
    const webhook = await createWebhook()
    const link = await createLink(webhook, 'contract.create')
    await app.admin('DELETE', `${WEBHOOKS}/${webhook}`)
    for (const method of ['GET', 'DELETE'] as const)
      await expectRefusal(() => app.admin(method, `${LINKS}/${link.document_id}`), 404, 'not_found')
  })
})

test('whoever holds no token or no permission is told so, and nothing of what is there', async () => {
  const webhook = await createWebhook()
  const link = await createLink(webhook, 'contract.create')
  const member = await app.signInMember([account])
  for (const [method, path, permission] of [
    ['GET', `${WEBHOOKS}/${webhook}/events`, 'webhook-event:find-set'],
    ['PUT', `${WEBHOOKS}/${webhook}/events`, 'webhook-event:set'],
    ['POST', LINKS, 'webhook-event:create'],
    ['GET', LINKS, 'webhook-event:find-all'],
    ['GET', `${LINKS}/${link.document_id}`, 'webhook-event:find-one'],
    ['PATCH', `${LINKS}/${UNKNOWN_ID}`, 'webhook-event:update'],
    ['DELETE', `${LINKS}/${UNKNOWN_ID}`, 'webhook-event:delete'],
  ] as const) {
    const body = method === 'GET' ? undefined : { nonsense: true }
    await expectRefusal(() => app.anonymous(method, path, body), 401, 'unauthenticated')
    const refused = await expectRefusal(() => member.call(method, path, body), 403, 'permission_denied')
    expect(refused.detail).toContain(permission)
  }
  for (const [method, path] of [
    ['GET', `${WEBHOOKS}/${UNKNOWN_ID}/events`],
    ['PUT', `${WEBHOOKS}/${UNKNOWN_ID}/events`],
    ['PATCH', `${LINKS}/${UNKNOWN_ID}`],
    ['DELETE', `${LINKS}/${UNKNOWN_ID}`],
  ] as const)
    await expectRefusal(
      () => app.admin(method, path, method === 'GET' ? undefined : { nonsense: true }),
      404,
      'not_found',
    )
})
