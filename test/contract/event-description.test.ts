import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { EnvelopeBody } from '../../src/webhook/envelope/envelope.schema.ts'
import { buildEnvelope } from '../../src/webhook/envelope/envelope.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { expectProblem, type Json, NO_ONE, readEnvelope, startContractFixture } from './contract-fixture.ts'

const EVENTS = '/api/v3/webhook/event'
const HOOKS = '/api/v3/webhook/webhook'
const REMEDY = 'Subscribe to invoice.settle.'
let count = 0

const fixture = await openForFile(startContractFixture())
const account: string = (await fixture.createAccount()).document_id

const at = () => new Date(fixture.app.clock.now()).toISOString()
const path = ({ document_id: id }: Json) => `${EVENTS}/${id}`
const patch = (type: Json, body: Json) => fixture.app.admin('PATCH', path(type), body)

async function createType(more: Json = {}): Promise<Json> {
  count += 1
  const body = { internal: `invoice.pay-${count}`, is_tenant_visible: true, ...more }
  const answer = await fixture.app.admin('POST', EVENTS, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body.data
}

const deprecate = async (type: Json) => {
  const answer = await patch(type, { deprecated_at: at(), deprecation_remedy: REMEDY })
  expect(answer.status).toBe(200)
  return answer.body.data
}

describe('the examples', () => {
  test('events#examples: the example of every event type is an envelope as deliveries have it, of its type', async () => {
    await createType()
    const judge = new Ajv({ strict: false })
    judge.addFormat('uuid', true)
    judge.addFormat('date-time', true)
    const isEnvelope = judge.compile(EnvelopeBody)
    const { rows } = await fixture.app.database.pool.query('select internal, account_scope, example from event')
    expect(rows.length).toBeGreaterThan(100)
    for (const { internal, account_scope: scope, example } of rows) {
      expect(isEnvelope(example), internal).toBe(true)
      const { id, type, attempt, data } = example
      const { account: owner, resource, action, id: resourceId, url } = data
      const createdAt = new Date(example.created_at)
      const event = { id, type, createdAt, account: owner, resource, action, resourceId, url }
      expect(JSON.stringify(example), internal).toBe(JSON.stringify(JSON.parse(JSON.stringify(example))))
      expect(JSON.parse(buildEnvelope({ event, attempt })), internal).toEqual(example)
      expect(`${resource}.${action}`).toBe(internal)
      expect(owner !== null, internal).toBe(scope === 'account' && action !== 'purge')
    }
  })

  test('events#examples: is what a delivery has, but for its ids and times', async () => {
    for (const name of ['contract.create', 'contract.delete']) {
      const webhook = await fixture.createWebhook({ account }, [name])
      const id = await fixture.makeChange(account)
      await fixture.app.admin('DELETE', `/api/v3/contract/contract/${id}`)
      await fixture.app.settle()
      const body = readEnvelope(fixture.received(webhook)[0])
      const [row] = (await fixture.app.admin('GET', `${EVENTS}?filters=internal|eq|${name}`)).body.data
      const { example } = row
      const url = example.data.url?.replace(example.data.id, body.data.id) ?? null
      expect(body).toEqual({
        ...example,
        ...{ id: body.id, created_at: body.created_at },
        data: { ...example.data, account, id: body.data.id, url },
      })
    }
  })
})

describe('a deprecation', () => {
  test('events#deprecation: a new type has a group, and no deprecation', async () => {
    const type = await createType({ group: 'billing', description: 'An invoice was paid' })
    expect(type).toMatchObject({ group: 'billing', deprecated_at: null, deprecation_remedy: null })
    const { body } = await fixture.app.admin('GET', `${EVENTS}?filters=group|eq|billing`)
    expect(body.data.map((row: Json) => row.internal)).toEqual([type.internal])
  })

  test('events#deprecation: has a date and a remedy, both or neither, and ends', async () => {
    const type = await createType()
    const since = at()
    expect(await deprecate(type)).toMatchObject({ deprecated_at: since, deprecation_remedy: REMEDY })
    const found = await fixture.app.admin('GET', `${EVENTS}?filters=deprecated_at|null|false`)
    expect(found.body.data.map((row: Json) => row.internal)).toContain(type.internal)
    const half = expectProblem(await patch(type, { deprecation_remedy: null }), 422, 'validation_failed')
    expect(half.errors[0]).toMatchObject({ path: 'deprecation_remedy', code: 'required' })
    const other = expectProblem(await patch(type, { deprecated_at: null }), 422, 'validation_failed')
    expect(other.errors[0]).toMatchObject({ path: 'deprecated_at', code: 'required' })
    const ended = await patch(type, { deprecated_at: null, deprecation_remedy: null })
    expect(ended.body.data).toMatchObject({ deprecated_at: null, deprecation_remedy: null })
    expect((await patch(type, { deprecated_at: null })).body.message).toBe('Event type unchanged.')
  })

  test('events#deprecation: warns who subscribes, by each way, and who reads the set; the answer has the same members as before', async () => {
    const type = await deprecate(await createType())
    const warning = { event: type.internal, code: 'deprecated', message: `${type.internal} is deprecated: ${REMEDY}` }
    const url = `${fixture.receiver.origin}/deprecated`
    const created = await fixture.app.admin('POST', HOOKS, { url, account, events: [type.internal] })
    expect(created.status).toBe(201)
    expect(created.body.message).toContain(warning.message)
    const webhook = created.body.data.document_id
    const set = await fixture.app.admin('GET', `${HOOKS}/${webhook}/events`)
    expect(set.body.data.warnings).toEqual([warning])
    const again = await fixture.app.admin('PUT', `${HOOKS}/${webhook}/events`, { events: [type.internal] })
    expect([again.status, again.body.data.warnings]).toEqual([200, [warning]])
    const bare = (await fixture.app.admin('POST', HOOKS, { url, account })).body.data.document_id
    const body = { webhook: bare, event: type.document_id }
    const link = await fixture.app.admin('POST', '/api/v3/webhook/webhook-event', body)
    expect([link.status, link.body.data.warnings]).toEqual([201, [warning]])
    const second = await deprecate(await createType())
    const moved = await fixture.app.admin('PATCH', `/api/v3/webhook/webhook-event/${link.body.data.document_id}`, {
      event: second.document_id,
    })
    expect([moved.status, moved.body.data.warnings[0].code]).toEqual([200, 'deprecated'])
    const global = await fixture.app.admin('POST', HOOKS, { url, is_global: true, events: [type.internal] })
    expect(global.body.message).toContain(warning.message)
  })

  test('events#deprecation: loses nothing: who subscribes already, and who subscribes now, gets every event', async () => {
    const type = await createType()
    const before = await fixture.createWebhook({ account }, [type.internal])
    await deprecate(type)
    const after = await fixture.createWebhook({ account }, [type.internal])
    const published = await fixture.app.admin('POST', '/api/v3/webhook/publish', {
      event: type.internal,
      account,
      id: 'i',
    })
    expect(published.status).toBe(202)
    await fixture.app.settle()
    for (const webhook of [before, after])
      expect(fixture.received(webhook).map((request) => readEnvelope(request).type)).toEqual([type.internal])
  })

  test('events#deprecation: stays over a sync of the catalogue', async () => {
    const type = await deprecate(await createType({ group: 'kept' }))
    expect((await fixture.app.admin('POST', '/api/v3/webhook/catalogue/sync')).body.data).toMatchObject({
      in_sync: true,
      written: 0,
    })
    expect((await fixture.app.admin('GET', path(type))).body.data).toEqual(type)
  })

  test('events#deprecation: is a change of an external type alone, by who may, with an event and an audit entry', async () => {
    const [own] = await fixture.findEventIds(['contract.create'])
    expectProblem(await patch({ document_id: own }, { group: 'x' }), 409, 'conflict')
    expectProblem(await patch({ document_id: NO_ONE }, { group: 'x' }), 404, 'not_found')
    const type = await createType()
    expectProblem(await fixture.app.anonymous('PATCH', path(type), { group: 'x' }), 401, 'unauthenticated')
    const boss = await fixture.signInWithRoles([account], ['account-admin'])
    expectProblem(await boss.call('PATCH', path(type), { group: 'x' }), 403, 'permission_denied')
    await patch(type, { group: 'changed' })
    const { rows } = await fixture.app.database.pool.query(
      `select (select count(*)::int from event_occurrence where event = 'event.update' and resource_id = $1) as events,
         (select count(*)::int from audit_log where action = 'event.update' and target = $1::uuid) as entries`,
      [type.document_id],
    )
    expect(rows).toEqual([{ events: 1, entries: 1 }])
  })

  test('events#deprecation: refuses what is no description', async () => {
    const type = await createType()
    const refused = [
      {},
      { internal: 'other.name' },
      { group: 'Not a group' },
      { group: '\u202eabc' },
      { group: 'a'.repeat(51) },
      { description: 'x'.repeat(501) },
      { deprecated_at: 'tomorrow', deprecation_remedy: REMEDY },
      { deprecated_at: at(), deprecation_remedy: '' },
      { deprecated_at: at(), deprecation_remedy: 'x'.repeat(501) },
      { deprecated_at: at() },
    ]
    for (const body of refused) expectProblem(await patch(type, body), 422, 'validation_failed')
    expectProblem(await patch(type, { description: 'a\u0000b' }), 400, 'malformed_request')
    expect((await fixture.app.admin('GET', path(type))).body.data).toEqual(type)
  })
})
